//! Random numbers (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014): the same on every machine.

/// A stream of them, which its seed tells.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`; nothing where there is none.
    pub(crate) fn below(&mut self, count: usize) -> Option<usize> {
        (count > 0).then(|| (self.next() % count as u64) as usize)
    }

    /// A place among weights, each as often as its weight says; nothing where none is above 0.
    pub(crate) fn weighted(&mut self, weights: &[u64]) -> Option<usize> {
        let total = weights.iter().map(|&weight| u128::from(weight)).sum::<u128>();
        let mut drawn = u128::from(self.next()).checked_rem(total)?;
        weights.iter().position(|&weight| match drawn.checked_sub(u128::from(weight)) {
            Some(rest) => {
                drawn = rest;
                false
            }
            None => true,
        })
    }

    /// `count` numbers, 1 or more of them, whose product is `product`, each choice of them as likely as any other.
    pub(crate) fn factors(&mut self, product: i64, count: usize) -> Vec<i64> {
        let mut factors = vec![1; count];
        for (prime, power) in primes(product) {
            for (factor, part) in factors.iter_mut().zip(self.parts(power, count)) {
                *factor *= prime.pow(part);
            }
        }
        factors
    }

    /// A factor of a number that is above 1, which is not 1 itself.
    pub(crate) fn divisor(&mut self, number: i64) -> i64 {
        let primes = primes(number);
        let drawn = primes.iter().map(|&(prime, power)| {
            prime.pow(self.below(power as usize + 1).unwrap_or_default() as u32)
        });
        match drawn.product() {
            1 => primes.first().map_or(number, |&(prime, _)| prime),
            divisor => divisor,
        }
    }

    /// `count` numbers whose sum is `sum`: what lies between bars that are drawn among as many places as there are both.
    fn parts(&mut self, sum: u32, count: usize) -> Vec<u32> {
        let mut parts = vec![0; count];
        let (mut at, mut bars) = (0, count - 1);
        for place in (1..=sum as usize + count - 1).rev() {
            if self.below(place).is_some_and(|drawn| drawn < bars) {
                (at, bars) = (at + 1, bars - 1);
            } else {
                parts[at] += 1;
            }
        }
        parts
    }
}

/// Prime factors beyond this one are not looked for: what is left then counts as one.
const MOST: i64 = 1 << 20;

/// The prime factors of a positive number, with their powers.
pub(crate) fn primes(mut number: i64) -> Vec<(i64, u32)> {
    let mut found = Vec::new();
    let mut prime = 2;
    while prime <= MOST && prime * prime <= number {
        let mut power = 0;
        while number % prime == 0 {
            (number, power) = (number / prime, power + 1);
        }
        if power > 0 {
            found.push((prime, power));
        }
        prime += 1;
    }
    if number > 1 {
        found.push((number, 1));
    }
    found
}

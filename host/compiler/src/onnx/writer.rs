//! Writes protobuf messages, for tests.

/// A message under construction.
#[derive(Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn int(mut self, number: u32, value: i64) -> Self {
        self.varint(u64::from(number) << 3);
        self.varint(value.cast_unsigned());
        self
    }

    pub(crate) fn float(mut self, number: u32, value: f32) -> Self {
        self.varint(u64::from(number) << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn double(mut self, number: u32, value: f64) -> Self {
        self.varint(u64::from(number) << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, number: u32, value: impl AsRef<[u8]>) -> Self {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(value.as_ref().len() as u64);
        self.0.extend(value.as_ref());
        self
    }

    pub(crate) fn message(self, number: u32, value: Self) -> Self {
        self.bytes(number, value.0)
    }

    /// A packed list of integers.
    pub(crate) fn ints(self, number: u32, values: &[i64]) -> Self {
        let mut packed = Self::new();
        values.iter().for_each(|value| packed.varint(value.cast_unsigned()));
        self.message(number, packed)
    }

    /// A packed list of floats.
    pub(crate) fn floats(self, number: u32, values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.bytes(number, bytes)
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

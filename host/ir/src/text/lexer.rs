//! Splits the text into tokens, one at a time.
//!
//! ```text
//! %x  %"a b"      a variable          @main  @"a b"    a function or a weight
//! ^12             a label             my.fold2d        a word
//! 12  1.5e-3f64   a number            .3               a tuple item
//! "text"          a string            // comment       skipped, like white space
//! ```

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok {
    End,
    Word,
    Var,
    Global,
    Label,
    Item,
    Int,
    Float,
    Str,
    LParen,
    RParen,
    LBrace,
    RBrace,
    LBracket,
    RBracket,
    Comma,
    Colon,
    Assign,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Arrow,
    Range,
    Ellipsis,
    /// A string without an end.
    OpenStr,
    /// A character that begins no token.
    Bad,
}

impl Tok {
    /// The token in messages.
    pub(super) fn text(self) -> &'static str {
        match self {
            Tok::End => "the end of the text",
            Tok::Word => "a word",
            Tok::Var => "a variable",
            Tok::Global => "a name with `@`",
            Tok::Label => "a label",
            Tok::Item => "a tuple item",
            Tok::Int => "an integer",
            Tok::Float => "a number",
            Tok::Str => "a string",
            Tok::LParen => "`(`",
            Tok::RParen => "`)`",
            Tok::LBrace => "`{`",
            Tok::RBrace => "`}`",
            Tok::LBracket => "`[`",
            Tok::RBracket => "`]`",
            Tok::Comma => "`,`",
            Tok::Colon => "`:`",
            Tok::Assign => "`=`",
            Tok::Eq => "`==`",
            Tok::Ne => "`!=`",
            Tok::Lt => "`<`",
            Tok::Le => "`<=`",
            Tok::Gt => "`>`",
            Tok::Ge => "`>=`",
            Tok::And => "`&&`",
            Tok::Or => "`||`",
            Tok::Plus => "`+`",
            Tok::Minus => "`-`",
            Tok::Star => "`*`",
            Tok::Slash => "`/`",
            Tok::Percent => "`%`",
            Tok::Arrow => "`->`",
            Tok::Range => "`..`",
            Tok::Ellipsis => "`...`",
            Tok::OpenStr => "a string without an end",
            Tok::Bad => "a stray character",
        }
    }
}

/// A token and its bytes in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) tok: Tok,
    pub(super) start: u32,
    pub(super) end: u32,
}

/// The text and how far it was read. Copying it is how one looks ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'s> {
    text: &'s str,
    at: usize,
}

const NAME: u8 = 1;
const DIGIT: u8 = 2;
const SPACE: u8 = 4;

/// What each byte can be part of.
const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        class[byte] = match byte as u8 {
            b'0'..=b'9' => NAME | DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => NAME,
            b' ' | b'\n' | b'\t' | b'\r' => SPACE,
            _ => 0,
        };
        byte += 1;
    }
    class
};

impl<'s> Lexer<'s> {
    pub(super) fn new(text: &'s str) -> Self {
        Self { text, at: 0 }
    }

    /// Goes on from byte `at`.
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Token {
        self.skip_space();
        let start = self.at;
        let tok = self.scan();
        Token { tok, start: start as u32, end: self.at as u32 }
    }

    fn byte(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(self.at + offset).copied().unwrap_or(0)
    }

    fn is(&self, offset: usize, class: u8) -> bool {
        CLASS[self.byte(offset) as usize] & class != 0
    }

    fn skip_space(&mut self) {
        loop {
            while self.is(0, SPACE) {
                self.at += 1;
            }
            if self.byte(0) != b'/' || self.byte(1) != b'/' {
                return;
            }
            let rest = &self.text.as_bytes()[self.at..];
            self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        }
    }

    fn scan(&mut self) -> Tok {
        let first = self.byte(0);
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'0'..=b'9' => self.number(),
            b'%' if self.is(1, NAME) || self.byte(1) == b'"' => self.sigil(Tok::Var, false),
            b'@' if self.is(1, NAME) || self.byte(1) == b'"' => self.sigil(Tok::Global, true),
            b'^' if self.is(1, DIGIT) => {
                self.at += 1;
                self.run(DIGIT);
                Tok::Label
            }
            b'"' => self.string(Tok::Str),
            b'.' if self.is(1, DIGIT) => {
                self.at += 1;
                self.run(DIGIT);
                Tok::Item
            }
            0 if self.at >= self.text.len() => Tok::End,
            _ => self.punctuation(first),
        }
    }

    fn run(&mut self, class: u8) {
        while self.is(0, class) {
            self.at += 1;
        }
    }

    fn word(&mut self) -> Tok {
        self.run(NAME);
        while self.byte(0) == b'.' && self.is(1, NAME) && !self.is(1, DIGIT) {
            self.at += 1;
            self.run(NAME);
        }
        Tok::Word
    }

    fn sigil(&mut self, tok: Tok, has_dots: bool) -> Tok {
        self.at += 1;
        if self.byte(0) == b'"' {
            return self.string(tok);
        }
        self.run(NAME);
        while has_dots && self.byte(0) == b'.' && self.is(1, NAME) {
            self.at += 1;
            self.run(NAME);
        }
        tok
    }

    /// Digits, fraction, exponent, and a suffix that names a type; or a hexadecimal integer.
    fn number(&mut self) -> Tok {
        if self.byte(0) == b'0' && self.byte(1) == b'x' {
            self.run(NAME);
            return Tok::Int;
        }
        let mut tok = Tok::Int;
        self.run(DIGIT);
        if self.byte(0) == b'.' && self.is(1, DIGIT) {
            self.at += 1;
            self.run(DIGIT);
            tok = Tok::Float;
        }
        let sign = matches!(self.byte(1), b'+' | b'-') as usize;
        if matches!(self.byte(0), b'e' | b'E') && self.is(1 + sign, DIGIT) {
            self.at += 1 + sign;
            self.run(DIGIT);
            tok = Tok::Float;
        }
        self.run(NAME);
        tok
    }

    fn string(&mut self, tok: Tok) -> Tok {
        self.at += 1;
        loop {
            match self.byte(0) {
                b'"' => {
                    self.at += 1;
                    return tok;
                }
                b'\\' if self.at + 1 < self.text.len() => {
                    self.at += 2;
                    while !self.text.is_char_boundary(self.at) {
                        self.at += 1;
                    }
                }
                b'\n' => return Tok::OpenStr,
                0 if self.at >= self.text.len() => return Tok::OpenStr,
                _ => self.at += 1,
            }
        }
    }

    fn punctuation(&mut self, first: u8) -> Tok {
        let (tok, len) = match (first, self.byte(1)) {
            (b'(', _) => (Tok::LParen, 1),
            (b')', _) => (Tok::RParen, 1),
            (b'{', _) => (Tok::LBrace, 1),
            (b'}', _) => (Tok::RBrace, 1),
            (b'[', _) => (Tok::LBracket, 1),
            (b']', _) => (Tok::RBracket, 1),
            (b',', _) => (Tok::Comma, 1),
            (b':', _) => (Tok::Colon, 1),
            (b'=', b'=') => (Tok::Eq, 2),
            (b'=', _) => (Tok::Assign, 1),
            (b'!', b'=') => (Tok::Ne, 2),
            (b'<', b'=') => (Tok::Le, 2),
            (b'<', _) => (Tok::Lt, 1),
            (b'>', b'=') => (Tok::Ge, 2),
            (b'>', _) => (Tok::Gt, 1),
            (b'&', b'&') => (Tok::And, 2),
            (b'|', b'|') => (Tok::Or, 2),
            (b'+', _) => (Tok::Plus, 1),
            (b'-', b'>') => (Tok::Arrow, 2),
            (b'-', _) => (Tok::Minus, 1),
            (b'*', _) => (Tok::Star, 1),
            (b'/', _) => (Tok::Slash, 1),
            (b'%', _) => (Tok::Percent, 1),
            (b'.', b'.') if self.byte(2) == b'.' => (Tok::Ellipsis, 3),
            (b'.', b'.') => (Tok::Range, 2),
            _ => (Tok::Bad, self.text[self.at..].chars().next().map_or(1, char::len_utf8)),
        };
        self.at += len;
        tok
    }
}

#[cfg(test)]
mod tests {
    use super::{Lexer, Tok};

    fn tokens(text: &str) -> Vec<(Tok, &str)> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| {
            let token = lexer.next();
            (token.tok != Tok::End)
                .then(|| (token.tok, &text[token.start as usize..token.end as usize]))
        })
        .collect()
    }

    #[test]
    fn numbers_keep_their_suffix_and_leave_ranges_alone() {
        use Tok::{Float, Int, Item, Range, Var};
        assert_eq!(
            tokens("0..16 1i32 2.5f64 1e5 1.0e-3f16 %t.0.1 0x7fc1"),
            [
                (Int, "0"),
                (Range, ".."),
                (Int, "16"),
                (Int, "1i32"),
                (Float, "2.5f64"),
                (Float, "1e5"),
                (Float, "1.0e-3f16"),
                (Var, "%t"),
                (Item, ".0"),
                (Item, ".1"),
                (Int, "0x7fc1"),
            ]
        );
    }

    #[test]
    fn names_may_be_quoted() {
        use Tok::{Global, Str, Var, Word};
        assert_eq!(
            tokens(r#"%"a b" @"w/0" my.fold2d "x\"y" // tail"#),
            [(Var, r#"%"a b""#), (Global, r#"@"w/0""#), (Word, "my.fold2d"), (Str, r#""x\"y""#)]
        );
    }

    #[test]
    fn a_percent_sign_alone_is_an_operator() {
        assert_eq!(tokens("%i % 4")[1], (Tok::Percent, "%"));
    }

    #[test]
    fn what_is_no_token_is_one_character() {
        assert_eq!(tokens("é"), [(Tok::Bad, "é")]);
        assert_eq!(tokens("\"ab\n")[0].0, Tok::OpenStr);
        assert_eq!(tokens("\"a\\é")[0].0, Tok::OpenStr);
    }
}

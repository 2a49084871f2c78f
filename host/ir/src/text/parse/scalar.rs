//! Scalar expressions of tensor programs.
//!
//! Operators wait on a stack until one that binds less tightly comes, so expressions nest as deep as
//! memory allows.

use super::Parser;
use super::body::Body;
use super::cursor::{Halt, Parsed, range};
use crate::diagnostics::Diagnostic;
use crate::diagnostics::count_of;
use crate::text::lexer::{Tok, Token};
use crate::text::names::scalar;
use crate::text::operators::infix;
use crate::{BinaryOp, Build, Context, DType, Expr, Kind, NodeSpec, Symbol, Type, View};

/// What is in the middle of being read.
enum Waiting {
    /// An operator and its left operand.
    Infix { op: BinaryOp, tightness: u8, left: Expr, span: u32 },
    /// `(…`, and the token behind it.
    Group(Token),
    /// Arguments or indices; those that are read stand on the stack of values.
    Args { what: Args, base: usize, span: u32 },
}

/// What the arguments are for.
enum Args {
    Load,
    Call,
    Select,
    Binary(BinaryOp),
    Ramp,
    Broadcast,
    Cast(Option<Type>),
    /// A type when one is written.
    Intrinsic(Symbol, Option<Option<Type>>),
    Raw(NodeSpec),
}

/// What comes next.
enum Next {
    Operand,
    Value(Expr),
    Done(Expr),
}

/// Reads one expression.
struct Scalar<'p, 's, 'w> {
    parser: &'p mut Parser<'s, 'w>,
    body: &'p mut Body<'s>,
    waiting: Vec<Waiting>,
    values: Vec<Expr>,
}

impl<'s> Parser<'s, '_> {
    /// A scalar expression.
    pub(super) fn scalar(&mut self, body: &mut Body<'s>) -> Parsed<Expr> {
        let waiting = Vec::new();
        Scalar { parser: self, body, waiting, values: Vec::new() }.expression()
    }
}

impl Scalar<'_, '_, '_> {
    fn expression(mut self) -> Parsed<Expr> {
        let mut next = Next::Operand;
        loop {
            next = match next {
                // An operand that has arguments is ready behind them.
                Next::Operand => self.operand()?.map_or(Next::Operand, Next::Value),
                Next::Value(value) => self.after(value)?,
                Next::Done(value) => return Ok(value),
            };
        }
    }

    /// Behind an operand: its arguments or indices, an operator, or the end of what waits for it.
    fn after(&mut self, value: Expr) -> Parsed<Next> {
        let token = self.parser.token;
        match token.tok {
            Tok::LBracket => {
                self.parser.check_has_elements(self.body, value)?;
                return self.open(value, Args::Load, Tok::RBracket);
            }
            Tok::LParen => return self.open(value, Args::Call, Tok::RParen),
            _ => {}
        }
        if let Some(op) = self.infix() {
            let tightness = infix(op).map_or(0, |infix| infix.tightness);
            self.parser.bump();
            let left = self.reduce(value, tightness);
            self.waiting.push(Waiting::Infix { op, tightness, left, span: token.start + 1 });
            return Ok(Next::Operand);
        }
        let value = self.reduce(value, 0);
        match self.waiting.pop() {
            None => Ok(Next::Done(value)),
            Some(waiting) => self.resume(waiting, value),
        }
    }

    /// Opens the indices or arguments of `value`.
    fn open(&mut self, value: Expr, what: Args, close: Tok) -> Parsed<Next> {
        let span = self.parser.bump().start + 1;
        let base = self.values.len();
        self.values.push(value);
        if self.parser.eat(close) {
            return self.finish(what, base, span).map(Next::Value);
        }
        self.waiting.push(Waiting::Args { what, base, span });
        Ok(Next::Operand)
    }

    /// An operand; `None` when its arguments are to be read first.
    fn operand(&mut self) -> Parsed<Option<Expr>> {
        let token = self.parser.token;
        let span = token.start + 1;
        match token.tok {
            Tok::Var | Tok::Label => self.parser.name_use(self.body).map(Some),
            Tok::Int | Tok::Float => self.number(false, span).map(Some),
            Tok::Minus => {
                self.parser.bump();
                match self.parser.token.tok {
                    Tok::Int | Tok::Float => self.number(true, span).map(Some),
                    Tok::Word if matches!(self.parser.slice(self.parser.token), "inf" | "nan") => {
                        let number = format!("-{}", self.parser.slice(self.parser.token));
                        Err(self.untyped(token, &number))
                    }
                    _ => {
                        let diagnostic = Diagnostic::error("only a number has a sign")
                            .label(range(token), "not before a number")
                            .help("write a subtraction, `0 - x`");
                        Err(self.parser.report(diagnostic))
                    }
                }
            }
            Tok::LParen => {
                self.parser.bump();
                self.waiting.push(Waiting::Group(self.parser.token));
                Ok(None)
            }
            Tok::Global => {
                self.parser.bump();
                let name = self.parser.unquoted(token, 1)?;
                let name = self.parser.symbol(&name);
                Ok(Some(self.body.leaf(Kind::GLOBAL, name, token)))
            }
            Tok::Str => {
                self.parser.bump();
                let name = self.parser.unquoted(token, 0)?;
                let name = self.parser.symbol(&name);
                self.intrinsic(name, span)
            }
            Tok::Word => self.word(token),
            _ => Err(self.parser.expected("an expression")),
        }
    }

    fn word(&mut self, token: Token) -> Parsed<Option<Expr>> {
        let word = self.parser.slice(token);
        let span = token.start + 1;
        let what = match word {
            "true" | "false" => {
                self.parser.bump();
                return Ok(Some(self.int(DType::BOOL, (word == "true") as i64, span)));
            }
            "lit" => return self.typed_literal(span).map(Some),
            "dim" => {
                self.parser.bump();
                self.parser.expect(Tok::LParen)?;
                let dim = self.parser.dim()?;
                self.parser.expect(Tok::RParen)?;
                let spec = NodeSpec { data: dim.0, span, ..NodeSpec::new(Kind::PRIM) };
                return Ok(Some(self.body.push_implied(spec, &[])));
            }
            "const" => {
                self.parser.bump();
                let constant = self.parser.constant()?;
                return Ok(Some(self.body.tx.shared_constant(constant)));
            }
            "extern" => {
                self.parser.bump();
                let name = self.parser.expect(Tok::Str)?;
                let name = self.parser.unquoted(name, 0)?;
                let data = self.parser.symbol(&name).0;
                let spec = NodeSpec { data, span, ..NodeSpec::new(Kind::EXTERN) };
                return Ok(Some(self.body.tx.push(spec, &[])));
            }
            "unknown" => {
                self.parser.bump();
                let spec = self.parser.raw_node(span)?;
                return self.args(Args::Raw(spec), span);
            }
            "select" => Args::Select,
            "min" => Args::Binary(BinaryOp::Min),
            "max" => Args::Binary(BinaryOp::Max),
            "ramp" => Args::Ramp,
            "broadcast" => Args::Broadcast,
            _ if word == "dtype" || scalar(word).is_some() => {
                let Some((dtype, lanes)) = self.parser.scalar_word(word)? else {
                    return Err(self.parser.expected("a type"));
                };
                self.parser.expect(Tok::LParen)?;
                let ty = self.parser.cx.vector_type(dtype, lanes);
                return self.args(Args::Cast(Some(ty)), span);
            }
            "inf" | "nan" => return Err(self.untyped(token, word)),
            _ => {
                self.parser.bump();
                let name = self.parser.op_symbol(word);
                return self.intrinsic(name, span);
            }
        };
        self.parser.bump();
        self.parser.expect(Tok::LParen)?;
        self.args(what, span)
    }

    /// `name(…)` or `name<type>(…)`.
    fn intrinsic(&mut self, name: Symbol, span: u32) -> Parsed<Option<Expr>> {
        let ty = match self.parser.eat(Tok::Lt) {
            true => {
                let ty = match self.parser.eat_word("_") {
                    true => None,
                    false => Some(self.parser.ty()?),
                };
                self.parser.expect(Tok::Gt)?;
                Some(ty)
            }
            false => None,
        };
        self.parser.expect(Tok::LParen)?;
        self.args(Args::Intrinsic(name, ty), span)
    }

    /// Behind an opening parenthesis: arguments follow, unless it is closed at once.
    fn args(&mut self, what: Args, span: u32) -> Parsed<Option<Expr>> {
        let base = self.values.len();
        if self.parser.eat(Tok::RParen) {
            return self.finish(what, base, span).map(Some);
        }
        self.waiting.push(Waiting::Args { what, base, span });
        Ok(None)
    }

    /// The operator that stands here.
    fn infix(&self) -> Option<BinaryOp> {
        Some(match self.parser.token.tok {
            Tok::Plus => BinaryOp::Add,
            Tok::Minus => BinaryOp::Sub,
            Tok::Star => BinaryOp::Mul,
            Tok::Slash => BinaryOp::Div,
            Tok::Percent => BinaryOp::FloorMod,
            Tok::Eq => BinaryOp::Eq,
            Tok::Ne => BinaryOp::Ne,
            Tok::Lt => BinaryOp::Lt,
            Tok::Le => BinaryOp::Le,
            Tok::Gt => BinaryOp::Gt,
            Tok::Ge => BinaryOp::Ge,
            Tok::And => BinaryOp::And,
            Tok::Or => BinaryOp::Or,
            Tok::Word if self.parser.at_word("floordiv") => BinaryOp::FloorDiv,
            _ => return None,
        })
    }

    /// Applies the operators that wait for `value` and bind at least as tightly.
    fn reduce(&mut self, mut value: Expr, tightness: u8) -> Expr {
        while let Some(Waiting::Infix { op, tightness: own, left, span }) = self.waiting.last() {
            if *own < tightness {
                break;
            }
            let spec = NodeSpec { data: *op as u32, span: *span, ..NodeSpec::new(Kind::BINARY) };
            value = self.body.push_implied(spec, &[*left, value]);
            self.waiting.pop();
        }
        value
    }
}

impl Scalar<'_, '_, '_> {
    /// Goes on behind a whole operand of what waited for it.
    fn resume(&mut self, waiting: Waiting, value: Expr) -> Parsed<Next> {
        match waiting {
            Waiting::Infix { .. } => unreachable!("operators were applied"),
            Waiting::Group(first) => {
                let is_name =
                    self.parser.last_end == first.end && matches!(first.tok, Tok::Var | Tok::Label);
                if self.parser.at(Tok::Colon) {
                    let ty = self.parser.ascription(is_name)?;
                    self.body.tx.set_type(value, ty);
                }
                self.parser.expect(Tok::RParen)?;
                Ok(Next::Value(value))
            }
            Waiting::Args { what, base, span } => {
                self.values.push(value);
                let close = if matches!(what, Args::Load) { Tok::RBracket } else { Tok::RParen };
                let is_end = match self.parser.eat(Tok::Comma) {
                    true => self.parser.eat(close),
                    false if self.parser.at(close) => {
                        self.parser.bump();
                        true
                    }
                    false => {
                        return Err(self.parser.expected(&format!("`,` or {}", close.text())));
                    }
                };
                match is_end {
                    true => self.finish(what, base, span).map(Next::Value),
                    false => {
                        self.waiting.push(Waiting::Args { what, base, span });
                        Ok(Next::Operand)
                    }
                }
            }
        }
    }

    /// Makes the node whose arguments are read.
    fn finish(&mut self, what: Args, base: usize, span: u32) -> Parsed<Expr> {
        let args = self.values.split_off(base);
        let wanted = match what {
            Args::Select => Some(3),
            Args::Binary(_) | Args::Ramp | Args::Broadcast => {
                Some(2 + matches!(what, Args::Ramp) as usize)
            }
            Args::Cast(_) => Some(1),
            Args::Load | Args::Call | Args::Intrinsic(..) | Args::Raw(_) => None,
        };
        if wanted.is_some_and(|wanted| wanted != args.len()) {
            return Err(self.wrong_count(wanted.unwrap_or(0), args.len(), span));
        }
        let spec = |kind| NodeSpec { span, ..NodeSpec::new(kind) };
        let expr = match what {
            Args::Load => self.body.push_implied(spec(Kind::LOAD), &args),
            Args::Select => self.body.push_implied(spec(Kind::SELECT), &args),
            Args::Binary(op) => {
                let spec = NodeSpec { data: op as u32, ..spec(Kind::BINARY) };
                self.body.push_implied(spec, &args)
            }
            Args::Cast(ty) => self.body.tx.push(NodeSpec { ty, ..spec(Kind::CAST) }, &args),
            Args::Ramp => self.vector(spec(Kind::RAMP), &args)?,
            Args::Broadcast => self.vector(spec(Kind::BROADCAST), &args)?,
            Args::Intrinsic(name, ty) => {
                let last = args.last().and_then(|&arg| self.body.tx.body().ty(arg));
                let ty = ty.unwrap_or(last);
                let spec = NodeSpec { ty, data: name.0, ..spec(Kind::INTRINSIC) };
                self.body.tx.push(spec, &args)
            }
            Args::Call => {
                let attrs = self.parser.attrs()?;
                self.body.tx.push(NodeSpec { attrs, ..spec(Kind::CALL) }, &args)
            }
            Args::Raw(raw) => {
                let attrs = self.parser.attrs()?;
                self.body.tx.push(NodeSpec { attrs, ..raw }, &args)
            }
        };
        Ok(expr)
    }

    fn wrong_count(&mut self, wanted: usize, found: usize, span: u32) -> Halt {
        let span = span as usize - 1..self.parser.last_end as usize;
        let message = format!("this takes {}, but there are {found}", count_of(wanted, "argument"));
        self.parser.error_at(span, message, count_of(found, "argument"))
    }

    /// A ramp or a broadcast, whose last argument is the number of lanes.
    fn vector(&mut self, spec: NodeSpec, args: &[Expr]) -> Parsed<Expr> {
        let body = self.body.tx.body();
        let dtype = body.scalar_ty(args[0]).map_or(DType::I64, |(dtype, _)| dtype);
        let (operands, lanes) = args.split_at(args.len() - 1);
        let lanes = match body.view(lanes[0]) {
            View::Int(lanes) => u16::try_from(lanes).ok(),
            _ => None,
        };
        let Some(lanes) = lanes else {
            let end = self.parser.last_end as usize;
            let message = "the number of lanes is a literal below 65536";
            return Err(self.parser.error_at(spec.span as usize - 1..end, message, ""));
        };
        let ty = Some(self.parser.cx.vector_type(dtype, lanes));
        Ok(self.body.tx.push(NodeSpec { ty, ..spec }, operands))
    }
}

impl Scalar<'_, '_, '_> {
    fn int(&mut self, dtype: DType, value: i64, span: u32) -> Expr {
        let ty = Some(self.parser.scalar_type(dtype));
        let data = self.parser.int(value).0;
        self.body.tx.push(NodeSpec { ty, data, span, ..NodeSpec::new(Kind::INT) }, &[])
    }

    /// Refuses a number that says no type.
    fn untyped(&mut self, token: Token, number: &str) -> Halt {
        let diagnostic = Diagnostic::error("this number needs its type")
            .label(range(token), "a bare number")
            .help(format!("write `lit<f32>({number})`"));
        self.parser.report(diagnostic)
    }

    /// A number behind its sign: `1` is an i64, `1.0` an f32, any other has a suffix.
    fn number(&mut self, is_negative: bool, span: u32) -> Parsed<Expr> {
        let token = self.parser.token;
        let text = self.parser.slice(token);
        let (digits, suffix) = text.split_at(digits_len(text));
        let suffix = match suffix {
            "" if token.tok == Tok::Int => DType::I64,
            "" => DType::F32,
            _ => match DType::from_name(suffix) {
                Some(dtype) => dtype,
                None => return Err(self.parser.wrong_number(token, "a number of a known dtype")),
            },
        };
        if suffix.is_float() && token.tok == Tok::Float {
            let Ok(value) = digits.parse::<f64>() else {
                return Err(self.parser.wrong_number(token, "a number"));
            };
            self.parser.bump();
            return Ok(self.float(suffix, if is_negative { -value } else { value }, span));
        }
        let value = super::numbers::integer(digits, is_negative).filter(|_| !suffix.is_float());
        let Some(value) = value else {
            let what = match suffix.is_float() {
                true => "a float: it has no decimal point",
                false => "an integer of this dtype",
            };
            return Err(self.parser.wrong_number(token, what));
        };
        self.parser.bump();
        Ok(self.int(suffix, value, span))
    }

    fn float(&mut self, dtype: DType, value: f64, span: u32) -> Expr {
        let ty = Some(self.parser.scalar_type(dtype));
        let data = self.parser.cx.float(value).0;
        self.body.tx.push(NodeSpec { ty, data, span, ..NodeSpec::new(Kind::FLOAT) }, &[])
    }

    /// `lit<type>(number)`.
    fn typed_literal(&mut self, span: u32) -> Parsed<Expr> {
        self.parser.bump();
        self.parser.expect(Tok::Lt)?;
        let ty = match self.parser.eat_word("_") {
            true => None,
            false => Some(self.parser.ty()?),
        };
        self.parser.expect(Tok::Gt)?;
        self.parser.expect(Tok::LParen)?;
        let is_negative = self.parser.eat(Tok::Minus);
        let kind = if self.parser.at(Tok::Int) { Kind::INT } else { Kind::FLOAT };
        let data = self.parser.signed_number(is_negative)?.0;
        self.parser.expect(Tok::RParen)?;
        Ok(self.body.tx.push(NodeSpec { ty, data, span, ..NodeSpec::new(kind) }, &[]))
    }
}

/// Length of a number without its suffix.
fn digits_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits =
        |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut len = digits(0);
    if bytes.get(len) == Some(&b'.') {
        len += 1 + digits(len + 1);
    }
    if matches!(bytes.get(len), Some(b'e' | b'E')) {
        let sign = matches!(bytes.get(len + 1), Some(b'+' | b'-')) as usize;
        match digits((len + 1 + sign).min(bytes.len())) {
            0 => {}
            exponent => len += 1 + sign + exponent,
        }
    }
    len
}

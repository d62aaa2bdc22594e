//! The program, judged from outside.

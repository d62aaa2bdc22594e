//! Records to text. A pure function: the same record gives the same bytes, and nothing is in a report that is not in
//! its records.

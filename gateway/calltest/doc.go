// Package calltest loads folders of saved calls, runs them and reports the results.
//
// The files of a folder run one after the other, in the order of their names. Captures of
// a file are variables of the later ones. Folders run at the same time, at most eight, but
// each server gets one call at a time.
//
// A [Runner] blocks until each call has a result. It knows neither how servers are reached
// nor how results are shown. Answers are untrusted: texts of results and reports are
// limited and safe for the place where they appear.
package calltest

/**
 * C0 controls (tab, CR, LF and NUL among them), DEL, C1 controls (NEL among them) and the two Unicode
 * line separators. None belongs into a header field or a name; the last three end a line for some readers.
 */
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** Every run of controls and line separators becomes one space, lone surrogates become U+FFFD. */
export function blankControls(text: string): string {
  return CONTROL.test(text) ? text.replace(CONTROLS, ' ').toWellFormed() : text.toWellFormed()
}

/** True if `text` holds a control or line separator other than tab, or a lone surrogate. */
export function hasControls(text: string): boolean {
  return CONTROL.test(text.includes('\t') ? text.replaceAll('\t', ' ') : text) || !text.isWellFormed()
}

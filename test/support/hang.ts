/**
 * Longest wait for one thing that a test awaits: a start, a response, an element of a page, a program. It ends a test that
 * hangs, and judges none: a wait takes a second as a rule, and a hundred times as long on a slow machine with other load.
 */
export const HANG_MS = 180_000

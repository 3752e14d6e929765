/**
 * Mail content as it arrives after DATA, in any pieces (RFC 5321 §4.1.1.4, §4.5.2): finds the end, removes doubled
 * dots, and changes nothing else.
 *
 * Only CRLF ends a line and only CRLF "." CRLF ends the content. A bare CR or a bare LF is a fault anywhere: SMTP
 * smuggling relies on line ends that one server recognizes and another does not.
 */

const LF = 10
const CR = 13
const DOT = 46

type DataProgress =
  | { kind: 'more' }
  /** The content is complete; bytes from `next` on belong to the dialogue. */
  | { kind: 'end'; next: number }
  | { kind: 'bare-line-end' }

type State =
  | 'line-start'
  | 'text'
  | 'cr'
  /** After the dot that begins a line; that dot is not content. */
  | 'dot'
  | 'dot-cr'

const MORE: DataProgress = { kind: 'more' }
const FAULT: DataProgress = { kind: 'bare-line-end' }

export class DataReader {
  #state: State = 'line-start'

  /** Emits the content in `bytes` as slices of it. Not to be used after `end` or a fault. */
  push(bytes: Uint8Array, out: (piece: Uint8Array) => void): DataProgress {
    const { length } = bytes
    let clean = 0
    let state = this.#state
    for (let index = 0; index < length; index++) {
      if (state === 'text' || (state === 'line-start' && bytes[index] !== DOT)) {
        // The inner loop sees nearly every byte: a compare and a step.
        while (index < length && (bytes[index] as number) !== CR && (bytes[index] as number) !== LF) index++
        state = 'text'
        if (index === length) break
      }
      const byte = bytes[index] as number
      const next = after(state, byte)
      if (next === null) return FAULT
      const leavesOut = next === 'dot' || next === 'dot-cr' || next === 'end'
      if (leavesOut) {
        if (index > clean) out(bytes.subarray(clean, index))
        clean = index + 1
      }
      if (next === 'end') return { kind: 'end', next: index + 1 }
      state = next
    }
    if (length > clean) out(bytes.subarray(clean, length))
    this.#state = state
    return MORE
  }
}

/** The state after one byte; null: a bare CR or LF. */
function after(state: State, byte: number): State | 'end' | null {
  switch (state) {
    case 'line-start':
      if (byte === DOT) return 'dot'
      return inText(byte)
    case 'text':
      return inText(byte)
    case 'cr':
      return byte === LF ? 'line-start' : null
    case 'dot':
      return byte === CR ? 'dot-cr' : inText(byte)
    case 'dot-cr':
      return byte === LF ? 'end' : null
  }
}

function inText(byte: number): State | null {
  if (byte === LF) return null
  return byte === CR ? 'cr' : 'text'
}

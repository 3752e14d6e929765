/** JSON of an object with long texts, piece by piece. */
import { inPieces } from '../../protocols/message/mime-message.ts'
import { textOf } from '../../protocols/mime/charset.ts'
import type { Utf8 } from '../compose/mail-texts.ts'

/** The members in their order; those that `texts` has, with its UTF-8 in place of their value. */
export async function* jsonStream(
  members: Readonly<Record<string, unknown>>,
  texts: Readonly<Record<string, Utf8>>,
): AsyncGenerator<Uint8Array> {
  let before = '{'
  for (const [name, value] of Object.entries(members)) {
    yield Buffer.from(`${before}${JSON.stringify(name)}:`)
    const text = texts[name]
    if (text === undefined) yield Buffer.from(JSON.stringify(value))
    else yield* jsonText(text)
    before = ','
  }
  yield Buffer.from('}')
}

async function* jsonText(text: Utf8): AsyncGenerator<Uint8Array> {
  const { open } = text instanceof Uint8Array ? inPieces(text) : text
  yield Buffer.from('"')
  for await (const piece of textOf(open(), new TextDecoder('utf-8', { ignoreBOM: true })))
    yield Buffer.from(JSON.stringify(piece).slice(1, -1))
  yield Buffer.from('"')
}

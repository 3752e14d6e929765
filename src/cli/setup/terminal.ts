/** Questions on a terminal. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { CommandError } from '../usage.ts'

export type Terminal = ReturnType<typeof openTerminal>

/** @throws CommandError from a question when the input ends */
export function openTerminal() {
  let isHidden = false
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (!isHidden) process.stdout.write(chunk)
      done()
    },
  })
  const ended = new AbortController()
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  lines.once('close', () => ended.abort())
  lines.on('SIGINT', () => lines.close())
  const read = (prompt: string) =>
    lines.question(prompt, { signal: ended.signal }).catch(() => {
      throw new CommandError('Ended without an answer: nothing further was changed.')
    })
  return {
    /** The answer, `present` for an empty one. Asks again while `check` throws, with its message. */
    async ask(question: string, present: string, check?: (answer: string) => void): Promise<string> {
      for (;;) {
        const given = (await read(present === '' ? `${question}: ` : `${question} [${present}]: `)).trim()
        const answer = given === '' ? present : given
        try {
          check?.(answer)
          return answer
        } catch (error) {
          process.stdout.write(`  ${(error as Error).message}\n`)
        }
      }
    },
    /** Without showing what is typed. */
    async askHidden(question: string): Promise<string> {
      process.stdout.write(`${question}: `)
      isHidden = true
      try {
        return await read('')
      } finally {
        isHidden = false
        process.stdout.write('\n')
      }
    },
    say: (text: string): void => void process.stdout.write(`${text}\n`),
    close: () => lines.close(),
  }
}

/** Returned mail, delivered to a service as by a foreign server. */
import assert from 'node:assert/strict'
import type { TestService } from '../service.ts'
import { Dialogue } from '../smtp-dialogue.ts'
import type { SinkMessage } from '../smtp-sink.ts'
import type { Subject } from './mail.ts'

export const smtpOf = ({ config, service }: TestService) => ({
  host: config.smtpHost,
  port: service.smtp.port,
})

/** What a receiver knows about a mail that it accepted. */
export function subjectOf({ envelope, raw }: SinkMessage): Subject {
  const text = raw.toString('latin1')
  return {
    recipient: envelope.to[0] as string,
    returnPath: envelope.from,
    header: text.slice(0, text.indexOf('\r\n\r\n')),
  }
}

/** A server that has no login here. */
export class Returner {
  readonly #dialogue: Dialogue

  private constructor(dialogue: Dialogue) {
    this.#dialogue = dialogue
  }

  static connect(service: TestService): Promise<Returner> {
    return Returner.open(smtpOf(service))
  }

  static async open(address: { host: string; port: number }): Promise<Returner> {
    const dialogue = await Dialogue.open(address)
    assert.match((await dialogue.reply()) ?? '', /^220/)
    assert.match((await dialogue.say('EHLO mx.there.example')) ?? '', /^250/)
    return new Returner(dialogue)
  }

  /** Delivers one mail; resolves the final reply: to RCPT TO if that refused, else to the content. */
  async give(to: string, raw: string, sender = ''): Promise<string> {
    assert.match((await this.#dialogue.say(`MAIL FROM:<${sender}>`)) ?? '', /^250/)
    const taken = (await this.#dialogue.say(`RCPT TO:<${to}>`)) ?? ''
    if (!taken.startsWith('250')) {
      await this.#dialogue.say('RSET')
      return taken
    }
    assert.match((await this.#dialogue.say('DATA')) ?? '', /^354/)
    const lines = raw.replace(/\r?\n/g, '\r\n').replace(/^\./gm, '..')
    this.#dialogue.write(`${lines}${lines.endsWith('\r\n') ? '' : '\r\n'}.\r\n`)
    return (await this.#dialogue.reply()) ?? ''
  }

  close(): void {
    this.#dialogue.destroy()
  }
}

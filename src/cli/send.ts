import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { bareAddress, formatMailbox, parseMailbox } from '../protocols/mime/address.ts'
import { parseMessage } from '../protocols/mime/parse.ts'
import { createClient } from './local/client.ts'
import { CommandError, lists, parseFlags, switches, texts, wrongArguments } from './usage.ts'

export const usage = `sendwright send --from ADDRESS --to ADDRESS... [--cc ...] [--bcc ...] --subject TEXT
                [--text TEXT | --text-file FILE] [--html TEXT | --html-file FILE]
                [--attach FILE...] [--tag TAG...] [--domain NAME] [--json]
sendwright send --file MESSAGE.eml [--to ADDRESS...] [--domain NAME] [--json]

The sending domain is --domain, else the domain of the sender's address.
`

const OPTIONS = {
  ...texts('from', 'subject', 'text', 'text-file', 'html', 'html-file', 'domain', 'file'),
  ...lists('to', 'cc', 'bcc', 'attach', 'tag'),
  ...switches('json'),
}

/** `sendwright send`: one message, from arguments or from a file in RFC 5322 form. Prints its Message-Id. */
export async function run(args: string[]): Promise<void> {
  const values = parse(args)
  const form = values.file ? await formOfFile(values.file, values.to ?? []) : await formOfArguments(values)
  const domain = values.domain ?? parseMailbox(String(form.get('from'))).domain
  const answer = await createClient().call('POST', `/v3/${encodeURIComponent(domain)}/messages`, form)
  process.stdout.write(`${values.json ? JSON.stringify(answer) : answer['id']}\n`)
}

type Values = ReturnType<typeof parse>

const parse = (args: string[]) => parseFlags('send', args, OPTIONS)

async function formOfArguments(values: Values): Promise<FormData> {
  if (!values.from || !values.to || values.subject === undefined)
    throw wrongArguments('send', 'Give --from, --to and --subject, or --file')
  const form = new FormData()
  form.set('from', values.from)
  form.set('subject', values.subject)
  for (const name of ['to', 'cc', 'bcc'] as const)
    for (const value of values[name] ?? []) form.append(name, value)
  for (const value of values.tag ?? []) form.append('o:tag', value)
  for (const name of ['text', 'html'] as const) {
    const file = values[`${name}-file`]
    const value = values[name] ?? (file === undefined ? undefined : await readFile(file, 'utf8'))
    if (value !== undefined) form.set(name, value)
  }
  for (const file of values.attach ?? [])
    form.append('attachment', new Blob([await readFile(file)]), basename(file))
  return form
}

/** The parts of a message file as a send request; its recipients unless others are given. */
async function formOfFile(file: string, to: readonly string[]): Promise<FormData> {
  const message = await parseMessage(await readFile(file))
  const [from] = message.from
  const recipients = to.length > 0 ? to : message.to.map(formatMailbox)
  if (!from || recipients.length === 0) throw new CommandError(`${file} has no From or no To; give --to`)
  const form = new FormData()
  form.set('from', formatMailbox({ ...from, name: from.name || bareAddress(from) }))
  form.set('subject', message.subject)
  for (const recipient of recipients) form.append('to', recipient)
  if (message.text) form.set('text', message.text)
  if (message.html) form.set('html', message.html)
  for (const part of message.attachments) {
    const blob = new Blob([Buffer.from(part.content)], { type: part.contentType })
    form.append('attachment', blob, part.filename ?? 'attachment')
  }
  return form
}

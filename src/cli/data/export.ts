/** `sendwright export`: everything that `sendwright import folder` takes, from the running service into a folder. */

import { printableLine } from '../../base/printable.ts'
import { ApiUnavailable } from '../../carry/import/api-client.ts'
import { createApiSource } from '../../carry/import/api-source.ts'
import { KINDS } from '../../carry/import/entry.ts'
import { exportFolder, FolderInUse } from '../../carry/import/export-folder.ts'
import type { Remark } from '../../carry/import/journal.ts'
import { createProgressBar } from '../local/progress-bar.ts'
import { serviceApi } from '../local/service-api.ts'
import { print as printText } from '../operate/service.ts'
import { CommandError, lists, parseFlags, switches, texts, wrongArguments } from '../usage.ts'

export const usage = `sendwright export --to FOLDER [--domain NAME...] [--service URL --key-file FILE [--allow-http]] [--json]

Writes domains, webhooks, templates with versions, lists, members, suppressions and routes, one file of JSON lines each, as
\`sendwright import folder FOLDER\` takes them. Keys, passwords, messages and events are not in it; a backup has those.
URLs of webhooks may have passwords in them. --allow-http sends the key to another machine over http, unencrypted.
Exit codes: 0 all written, 1 failed, 2 wrong arguments, 3 something is missing.
`

const OPTIONS = {
  ...texts('to', 'service', 'key-file'),
  ...lists('domain'),
  ...switches('allow-http', 'json'),
}

/** Every account has a sandbox domain, which is no part of an export. */
const NOTHING =
  'Nothing to export: there are no domains but the sandbox, and no templates, lists or routes.\n'

/** @throws CommandError with the exit codes of the usage text */
export async function run(args: string[], print: (text: string) => void = printText): Promise<void> {
  const values = parseFlags('export', args, OPTIONS)
  if (values.to === undefined) throw wrongArguments('export', 'Name the folder with --to')
  const bar = createProgressBar()
  const client = serviceApi(values, (reason, waitMs) => {
    bar.note(`Waiting ${Math.ceil(waitMs / 1_000)} s: ${reason}`)
  })
  const domains = (values.domain ?? []).map((name) => name.toLowerCase())
  const source = createApiSource(client, { domains, kinds: new Set(KINDS) })
  const missing: Remark[] = []
  try {
    const counts = await exportFolder(source, {
      folder: values.to,
      onPage: (fraction) => bar.show(fraction, ''),
      // A sandbox domain belongs to its account; every account has one.
      onRemark: (remark) => {
        if (remark.kind !== 'domain') missing.push(remark)
      },
    })
    bar.end()
    const lines = Object.entries(counts).map(([kind, count]) => `${kind}  ${count}\n`)
    if (lines.length === 0) lines.push(NOTHING)
    print(values.json ? `${JSON.stringify({ counts, missing })}\n` : lines.join(''))
  } catch (error) {
    bar.end()
    if (error instanceof FolderInUse) throw new CommandError(error.message, 2)
    if (error instanceof ApiUnavailable) throw new CommandError(error.message)
    throw error
  }
  if (missing.length > 0)
    throw new CommandError(
      missing.map(({ place, reason }) => printableLine(`${place}: ${reason}`)).join('\n'),
      3,
    )
}

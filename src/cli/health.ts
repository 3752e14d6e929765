import { readConfig } from '../platform/config/config.ts'
import { localUrl } from './local/client.ts'
import { CommandError, parseFlags, switches } from './usage.ts'

export const usage = `sendwright health [--json]
`

const ANSWER_MAX_MS = 5_000

/** `sendwright health`: ends with 0 if the service can accept mail, else with 1 and its reason. Needs no login. */
export async function run(args: string[]): Promise<void> {
  const { json } = parseFlags('health', args, switches('json'))
  const url = `${localUrl(readConfig(process.env))}/health/ready`
  const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MAX_MS) }).catch(
    (error: unknown) => {
      throw new CommandError(`No answer from ${url}: ${(error as Error).message}`)
    },
  )
  const text = await response.text()
  if (!response.ok) throw new CommandError(`${url} answered ${response.status}: ${text}`)
  process.stdout.write(json ? `${JSON.stringify({ ready: true, url })}\n` : 'ready\n')
}

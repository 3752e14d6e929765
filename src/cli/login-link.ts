import { createClient } from './local/client.ts'
import { parseFlags, switches } from './usage.ts'

export const usage = `sendwright login-link [--json]
`

/** `sendwright login-link`: prints a link that works once, for thirty minutes. */
export async function run(args: string[]): Promise<void> {
  const { json } = parseFlags('login-link', args, switches('json'))
  const { url } = await createClient().call('POST', '/sendwright/v1/login-links')
  process.stdout.write(`${json ? JSON.stringify({ url }) : url}\n`)
}

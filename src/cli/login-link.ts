import { createClient } from './local/client.ts'
import { parseFlags } from './usage.ts'

export const LOGIN_LINK_USAGE = `sendwright login-link [--json]
`

/** `sendwright login-link`: prints a link that works once, for thirty minutes. */
export async function loginLinkCommand(args: string[]): Promise<void> {
  const { json } = parseFlags('login-link', { args, options: { json: { type: 'boolean' } } }).values
  const { url } = await createClient().call('POST', '/sendwright/v1/login-links')
  process.stdout.write(`${json ? JSON.stringify({ url }) : url}\n`)
}

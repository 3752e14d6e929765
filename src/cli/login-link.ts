import { createClient } from './client.ts'

export const LOGIN_LINK_USAGE = `sendwright login-link
`

/** `sendwright login-link`: prints a link that works once, for thirty minutes. */
export async function loginLinkCommand(): Promise<void> {
  const { url } = await createClient().call('POST', '/sendwright/v1/login-links')
  process.stdout.write(`${url}\n`)
}

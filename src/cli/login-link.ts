import { createClient } from './client.ts'

/** `sendwright login-link`: prints a link that works once, for thirty minutes. */
export async function loginLinkCommand(): Promise<void> {
  const { url } = await createClient().call('POST', '/sendwright/v1/login-links')
  process.stdout.write(`${url}\n`)
}

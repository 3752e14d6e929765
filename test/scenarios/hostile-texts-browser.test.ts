/**
 * Whoever can write a text that the dashboard shows cannot run a script there, or have it load something (R43): the sender of
 * a mail, the server that replies to one, and other users. In a real browser; `npm run drill -- R43` visits all pages.
 */
import { test } from 'node:test'
import { startHostileVisits } from '../support/hostile-visits.ts'

const TEXTS = 80
/** Where others than the account's own users write. */
const PAGES = ['/activity', '/inbox', '/webhooks/attempts', '/sending/lists', '/routes', '/settings/audit']

test('no text of a mail, a reply or a form runs a script or loads anything', async (t) => {
  const visits = await startHostileVisits(t, TEXTS)
  const messages = visits.messages.slice(0, 4).map((id) => `/activity/${encodeURIComponent(id)}`)
  const captured = visits.captured.slice(0, 4).map((id) => `/inbox/${encodeURIComponent(id)}`)
  await visits.visitEach([...PAGES, ...messages, ...captured])
  await visits.assertNothingRan()
})

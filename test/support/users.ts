/** Users for tests of the whole service: invited over HTTP, their mail is read from the inbox. */
import assert from 'node:assert/strict'
import { type Answer, eventually, type TestService } from './service.ts'

export const PASSWORD = 'correct horse battery'

interface Mail {
  id: string
  subject: string
}

/** The token in the newest mail to `email` with `subject` in its subject. `seen`: ids of older mails; the id is added. */
export async function mailedToken(
  service: TestService,
  email: string,
  subject: string,
  seen = new Set<string>(),
): Promise<string> {
  const query = new URLSearchParams({ to: email, subject })
  const mail = await eventually(`mail "${subject}" to ${email}`, async () => {
    const { body } = await service.call('GET', `/sendwright/v1/inbox?${query}`)
    return (body.items as Mail[]).find(({ id }) => !seen.has(id))
  })
  seen.add(mail.id)
  const { body } = await service.call('GET', `/sendwright/v1/inbox/${mail.id}`)
  const token = /#(?:invitation|reset)=([\w-]{43})/.exec(body.text as string)?.[1]
  assert.ok(token, body.text)
  return token
}

export const cookieOf = (answer: Answer) =>
  (answer.headers.get('set-cookie') ?? '').split(';', 1)[0] as string

export const post = (
  service: TestService,
  path: string,
  json: object,
  headers: Record<string, string> = {},
) => service.call('POST', `/sendwright/v1/${path}`, { key: null, json, headers })

/** A call with a session cookie. */
export const as = (service: TestService, cookie: string, method: string, path: string, json?: object) =>
  service.call(method, path, { key: null, headers: { cookie }, ...(json && { json }) })

export async function invite(service: TestService, email: string, role = 'developer'): Promise<string> {
  const answer = await service.call('POST', '/v5/users', { form: { email, name: 'Some One', role } })
  assert.equal(answer.status, 200, answer.text)
  return answer.body.id
}

/** An active user with PASSWORD; the cookie is of the session that accepting the invitation opened. */
export async function activeUser(
  service: TestService,
  email: string,
  role = 'developer',
): Promise<{ id: string; cookie: string }> {
  const id = await invite(service, email, role)
  const token = await mailedToken(service, email, 'invitation')
  const answer = await post(service, 'invitations/accept', { token, password: PASSWORD })
  assert.equal(answer.status, 200, answer.text)
  return { id, cookie: cookieOf(answer) }
}

export const signIn = (
  service: TestService,
  email: string,
  password = PASSWORD,
  code?: string,
  headers: Record<string, string> = {},
) => post(service, 'session', { email, password, ...(code !== undefined && { code }) }, headers)

/** Removing captured mail: all of it, or what a filter finds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, startTestService } from '../support/service.ts'

test('captured mail is removed by the filters of the list, without one all of it', async (t) => {
  const service = await startTestService(t)
  const subjects = async () =>
    (await service.call('GET', '/sendwright/v1/inbox')).body.items
      .map((item: { subject: string }) => item.subject)
      .sort()
  for (const [to, subject] of [
    ['ann@example.org', 'one'],
    ['bob@example.org', 'two'],
    ['bob@example.org', 'three'],
  ])
    await service.send({
      from: `a@${service.domain}`,
      to: to as string,
      subject: subject as string,
      text: 'Hello',
    })
  await eventually('three are captured', async () => (await subjects()).length === 3)

  const some = await service.call('DELETE', '/sendwright/v1/inbox?to=bob%40&subject=Two')
  assert.equal(some.status, 200)
  assert.deepEqual(await subjects(), ['one', 'three'])
  await service.call('DELETE', '/sendwright/v1/inbox?domain=other.example')
  assert.deepEqual(await subjects(), ['one', 'three'])
  await service.call('DELETE', '/sendwright/v1/inbox')
  assert.deepEqual(await subjects(), [])
})

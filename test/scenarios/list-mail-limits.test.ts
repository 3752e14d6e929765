/** Limits of posts to mailing lists by mail from outside. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RECEIVED, startScene } from '../support/list-mail.ts'
import { eventually } from '../support/service.ts'

test('the limit of the account and those of a list hold for posts', async (t) => {
  const scene = await startScene(t, 'sqlite', { SENDWRIGHT_RATE_LIMIT: '100' })
  const { newList, service, sink } = scene
  const members = Array.from({ length: 1_001 }, (_, n) => `m${n}@members.example`)
  const list = await newList('open', { access_level: 'everyone' }, members.slice(1))
  await service.call('POST', `/v3/lists/${list}/members`, { form: { address: members[0] as string } })
  await eventually('all members', async () => {
    const { body } = await service.call('GET', `/v3/lists/${list}`)
    return body.list.members_count === members.length
  })
  const setLimit = async (limit: string) => {
    const set = await service.call('PUT', '/v5/accounts/limit/custom/monthly', { form: { limit } })
    assert.equal(set.status, 200, set.text)
  }
  await setLimit('1000')
  assert.equal(await scene.post({ to: list }), '451 4.7.1 The list takes no posts now, try again later')
  await setLimit('2000')
  const id = '<limited@client.example>'
  assert.equal(await scene.post({ to: list, id }), RECEIVED)
  const current = async () => (await service.call('GET', '/v5/accounts/limit/custom/monthly')).body.current
  await eventually('the copies count', async () => (await current()) === members.length)
  await sink.waitFor(members.length)
  const empty = await newList('empty', { access_level: 'everyone' }, [])
  const begunAt = performance.now()
  let [posts, reply] = [0, '']
  do {
    reply = await scene.post({ to: empty })
    posts++
  } while (reply === RECEIVED)
  assert.equal(reply, '451 4.7.1 Too many posts to this list, try again later')
  // One more is allowed every minute.
  const filled = Math.ceil((performance.now() - begunAt) / 60_000)
  assert.ok(posts > 60 && posts <= 61 + filled, `${posts - 1} posts`)
  assert.equal(await scene.post({ to: empty, from: 'Pat <pat@plain.example>' }), RECEIVED, 'another author')
  assert.equal(sink.messages.length, members.length)
})

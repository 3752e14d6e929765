/** Limits of an account hold for requests that arrive at the same time. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { type Answer, startTestService } from '../../../test/support/service.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'

eachDatabase((database) =>
  test('10 open tests and 100 lists, however many are asked for at once', async (t) => {
    const file = join(await temporaryFolder(t), 'seeds.json')
    const seed = { address: 'one@seeds.example', host: '127.0.0.1', port: 1, user: 'one', password: 'secret' }
    await writeFile(file, JSON.stringify([seed]))
    const service = await startTestService(t, { SENDWRIGHT_PLACEMENT_SEEDS: file }, { database })
    const many = (count: number, call: () => Promise<Answer>) =>
      Promise.all(Array.from({ length: count }, call))
    const json = { from: `a@${service.domain}`, subject: 'x', html: 'x' }
    const tests = await many(30, () => service.call('POST', '/v4/inbox/tests', { json }))
    assert.deepEqual(countsOf(tests), {
      '200': 10,
      '400 Too many inbox placement tests in progress': 20,
    })
    assert.equal((await service.call('GET', '/v4/inbox/results')).body.total, 10)

    // One is the list of all seeds.
    const lists = await many(130, () => service.call('POST', '/v4/inbox/seedlists', { form: { name: 'x' } }))
    assert.deepEqual(countsOf(lists), { '200': 99, '400 more than 100 seed lists': 31 })
    assert.equal((await service.call('GET', '/v4/inbox/seedlists')).body.total, 100)
  }),
)

function countsOf(answers: readonly Answer[]): Record<string, number> {
  const kinds = answers.map(({ status, body }) => (status === 200 ? '200' : `${status} ${body.message}`))
  return Object.fromEntries([...Map.groupBy(kinds, (kind) => kind)].map(([kind, all]) => [kind, all.length]))
}

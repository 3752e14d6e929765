/** What a recipient may switch on the page of topics, and how often. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import type { Unsubscription } from './links/tokens.ts'
import { createPreferencePages } from './preferences.ts'
import type { Visitor } from './unsubscribe.ts'

const FROM = { accountId: 'a', domainId: 'd', recipient: 'ann@example.org' } as Unsubscription
const TAGS = Array.from({ length: 25 }, (_, at) => ({ tag: `tag-${at}`, title: `Tag ${at}` }))

test('clicking to and fro makes some events an hour, and leaving is never refused', async () => {
  const clock = createTestClock()
  const off = new Set<string>()
  let events = 0
  const pages = createPreferencePages({
    clock,
    settings: { get: async () => ({ preferences: { isActive: true, topics: TAGS } }) as never },
    domains: { byId: async () => ({ accountId: 'a', name: 'example.com' }) as never },
    lists: { topicsOf: async () => [] },
    unsubscriber: {
      async unsubscribe({ tags }) {
        for (const tag of tags) off.add(tag)
        events++
        return true
      },
      resubscribe: async ({ tags }) => tags.map((tag) => off.delete(tag)).includes(true),
      isUnsubscribed: async () => false,
      tagStates: async (_from, tags) => tags.map((tag) => ({ tag, isOn: !off.has(tag), isFixed: false })),
    },
  })
  const shown = (await pages.of(FROM))?.topics.map(({ id }) => id) ?? []
  const choose = (on: readonly string[]) => pages.change(FROM, { shown, on }, {} as Visitor)
  const answers: boolean[] = []
  for (let click = 0; click < 10; click++) {
    assert.equal(await choose([]), true)
    assert.equal(off.size, TAGS.length)
    answers.push(await choose(shown))
  }
  assert.deepEqual(answers, [true, true, ...Array.from({ length: 8 }, () => false)])
  assert.equal(events, 25 + 60)
  assert.equal(await pages.change(FROM, 'unsubscribe-all', {} as Visitor), true)
  clock.leap(60 * 60_000)
  assert.equal(await choose(shown), true)
})

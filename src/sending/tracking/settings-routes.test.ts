import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createTrackingDirectory, DEFAULT_TRACKING } from './tracking-settings.ts'

let service: TestService
const cleanUps: (() => Promise<void> | void)[] = []
before(async () => {
  service = await startTestService({
    after: (run: () => Promise<void>) => cleanUps.unshift(run),
  } as unknown as TestContext)
})
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp()
})

const MESSAGE = 'Domain tracking settings have been updated'
const path = (rest = '', name = service.domain) => `/v3/domains/${name}/tracking${rest}`
const put = (kind: string, form: Record<string, string>) => service.call('PUT', path(`/${kind}`), { form })

test('a new domain has everything off and the default footers', async () => {
  assert.deepEqual((await service.call('GET', path())).body, {
    tracking: {
      open: { active: false, place_at_the_top: false },
      click: { active: false, htmlonly: false },
      unsubscribe: {
        active: false,
        html_footer: '\n<br>\n<p><a href="%unsubscribe_url%">unsubscribe</a></p>\n',
        text_footer: '\n\nTo unsubscribe click: <%unsubscribe_url%>\n\n',
      },
      web_scheme: 'http',
    },
  })
})

test('each setting changes alone, and its new value is returned', async () => {
  assert.deepEqual((await put('open', { active: 'yes' })).body, {
    message: MESSAGE,
    open: { active: true, place_at_the_top: false },
  })
  assert.deepEqual((await put('open', { place_at_the_top: 'true' })).body.open, {
    active: true,
    place_at_the_top: true,
  })
  for (const [value, active, htmlonly] of [
    ['true', true, false],
    ['htmlonly', true, true],
    ['no', false, false],
  ] as const)
    assert.deepEqual((await put('click', { active: value })).body, {
      message: MESSAGE,
      click: { active, htmlonly },
    })
  const footers = await put('unsubscribe', { active: 'true', html_footer: '', text_footer: 'bye' })
  assert.deepEqual(footers.body, {
    message: MESSAGE,
    unsubscribe: { active: true, html_footer: '', text_footer: 'bye' },
  })
  const kept = await put('unsubscribe', {})
  assert.deepEqual(kept.body.unsubscribe, footers.body.unsubscribe)
  const { tracking } = (await service.call('GET', path())).body
  assert.deepEqual(
    [tracking.open.active, tracking.click.active, tracking.unsubscribe.text_footer],
    [true, false, 'bye'],
  )
})

test('bad values and unknown domains are refused', async () => {
  for (const kind of ['open', 'click', 'unsubscribe']) {
    const bad = await put(kind, { active: 'sometimes' })
    assert.deepEqual(
      [bad.status, bad.body],
      [400, { message: "'sometimes' is not a valid value for active" }],
    )
    const unknown = await service.call('PUT', path(`/${kind}`, 'no.example'))
    assert.deepEqual([unknown.status, unknown.body], [404, { message: 'Domain not found' }])
  }
  assert.equal((await put('open', { active: 'htmlonly' })).status, 400)
  const long = await put('unsubscribe', { html_footer: 'x'.repeat(10 * 1024 + 1) })
  assert.deepEqual([long.status, long.body], [400, { message: 'Footer is too long' }])
  assert.equal((await service.call('GET', path('', 'no.example'))).status, 404)
  assert.equal((await service.call('GET', path(), { key: null })).status, 401)
})

eachStore('settings are kept, and forgotten with the domain', async (store) => {
  const tracking = createTrackingDirectory(store, systemClock)
  const domain = { id: 'd1', accountId: 'a1' }
  assert.deepEqual(await tracking.get('d1'), DEFAULT_TRACKING)
  await tracking.change(domain, { clicks: 'htmlonly', textFooter: '' })
  await tracking.change(domain, { opens: true })
  const expected = { ...DEFAULT_TRACKING, clicks: 'htmlonly', textFooter: '', opens: true }
  assert.deepEqual(await tracking.get('d1'), expected)
  assert.deepEqual(await createTrackingDirectory(store, systemClock).get('d1'), expected)
  await tracking.remove('d1')
  assert.deepEqual(await tracking.get('d1'), DEFAULT_TRACKING)
})

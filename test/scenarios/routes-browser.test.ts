/** The page of routes in a real browser: adding with help, the tester, changing, deleting with a way back. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { type Dashboard, LOOKS, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})
afterEach(() => dashboard.tidy())

const routes = async () => (await dashboard.service.call('GET', '/v3/routes')).body.items

test('by keyboard: a route is added; a wrong expression is refused with the reason', async () => {
  const page = await dashboard.open('/routes')
  await page.getByText('No route', { exact: true }).waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Add a route' }).first().press('Enter')
  const form = page.getByRole('dialog', { name: 'Add a route' })
  await form.getByLabel('What is it for').waitFor()
  await typeText(page, 'Support')
  await press(page, 'Tab')
  await typeText(page, 'match_recipient("support@"')
  await press(page, 'Tab')
  await typeText(page, 'store()')
  await form.getByRole('button', { name: 'Add a route' }).press('Enter')
  await form.getByText(/^Invalid expression:/).waitFor()
  await dashboard.sound(page)
  await form.getByLabel('Expression', { exact: true }).fill('match_recipient("support@")')
  await press(page, 'Enter')
  await page.getByText('Route added').waitFor()
  const [route] = await routes()
  assert.deepEqual(
    [route.description, route.expression, route.actions, route.priority],
    ['Support', 'match_recipient("support@")', ['store()'], 0],
  )
  await press(page, '/')
  await typeText(page, 'support@example.com')
  await page.getByText('Matched by: Support').waitFor()
  assert.match(page.url(), /address=support/)
  await page.getByLabel('Address of a recipient').fill('sales@example.com')
  await page.getByText('No route takes mail to this address').waitFor()
  await dashboard.sound(page)
})

test('by touch on a phone: a route from the examples, changed, deleted and brought back', async () => {
  const page = await dashboard.open('/routes?add=yes', { look: PHONE })
  const form = page.getByRole('dialog', { name: 'Add a route' })
  await form.getByLabel('What is it for').fill('The rest')
  await form.getByText('Expressions and actions').tap()
  await form.getByRole('button', { name: 'Use: catch_all()' }).tap()
  await form.getByRole('button', { name: 'Use: store()' }).tap()
  await form.getByRole('button', { name: 'Use: stop()' }).tap()
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Add a route' }).tap()
  await page.getByRole('link', { name: 'The rest' }).tap()
  const change = page.getByRole('dialog', { name: 'Change the route' })
  await change.getByLabel('Priority').fill('9')
  await change.getByRole('button', { name: 'Save' }).tap()
  await page.getByText('Route saved').waitFor()
  const rest = async () =>
    (await routes()).find(({ description }: { description: string }) => description === 'The rest')
  assert.deepEqual([(await rest()).priority, (await rest()).actions], [9, ['store()', 'stop()']])
  await page.getByRole('button', { name: 'Delete The rest' }).tap()
  await page.getByText('Route deleted').waitFor()
  assert.equal(await rest(), undefined)
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Undo' }).tap()
  await page.getByRole('link', { name: 'The rest' }).waitFor()
  assert.deepEqual([(await rest()).priority, (await rest()).expression], [9, 'catch_all()'])
})

test('a reader tests addresses and changes nothing', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  for (const look of LOOKS) {
    const page = await dashboard.open('/routes?add=yes&address=support%40example.com', {
      look,
      key: body.key.secret,
    })
    await page.getByText('Matched by: Support').waitFor()
    assert.equal(await page.getByRole('dialog').count(), 0)
    assert.equal(await page.getByRole('button', { name: /Add|Delete/ }).count(), 0)
    await dashboard.sound(page)
  }
})

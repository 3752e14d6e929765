/** Templates made of blocks, in a real browser: from nothing to a sent test without HTML, by keyboard, by pointer and by touch. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { insert, readBlocks, writeBlocks } from '../../web/src/sending/templates/blocks/block-document.ts'
import {
  EMPTY_DOCUMENT,
  newRow,
  type RowName,
  rowWith,
} from '../../web/src/sending/templates/blocks/presets.ts'
import { type Dashboard, PHONE, press, startDashboard, windowHasFocus } from '../support/dashboard.ts'
import { eventually } from '../support/service.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})
afterEach(() => dashboard.tidy())

const PATH = '/v4/templates'
const store = (name: string, mjml: string, more: Record<string, string> = {}) =>
  dashboard.service.call('POST', PATH, { form: { name, mjml, ...more } })
const versionOf = async (name: string) =>
  (await dashboard.service.call('GET', `${PATH}/${name}?active=yes`)).body.template.version
const save = async (page: Page) => {
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Version initial saved', { exact: false }).waitFor()
}
const names = (page: Page) => page.locator('.block-toggle').allInnerTexts()
const block = (page: Page, words: string | RegExp) => page.locator('.block-toggle', { hasText: words })
const letter = (inner: string) =>
  `<mjml><mj-body><mj-section><mj-column>${inner}</mj-column></mj-section></mj-body></mjml>`
const THREE = letter(['one', 'two', 'three'].map((word) => `<mj-text>${word}</mj-text>`).join(''))

test('a template is made of blocks and sent as a test, without a word of HTML', async () => {
  const { service } = dashboard
  const page = await dashboard.open('/sending/templates?add=yes')
  await windowHasFocus(page)
  await page.getByLabel('Name', { exact: true }).fill('offer')
  await page.getByText('Blocks', { exact: true }).click()
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { level: 1, name: 'offer' }).waitFor()
  await block(page, 'Text: Hello {{name}}').click()
  await page.getByRole('textbox', { name: 'Words' }).fill('Good morning, **{{name}}**')
  const palette = page.getByRole('group', { name: /^Add a block/ })
  await palette.getByRole('button', { name: 'Picture' }).click()
  await page.getByLabel('Picture (address)').fill('{{photo}}')
  await page.getByLabel('Description for those who do not see it').fill('Our shop')
  await page.getByRole('group', { name: 'Picture' }).getByLabel('Width').fill('320')
  await palette.getByRole('button', { name: 'Product row' }).click()
  await palette.getByRole('button', { name: 'Footer' }).click()
  await page.getByText('Colours and font').click()
  await page.getByLabel('Font').selectOption('Georgia, Times, serif')
  await page.getByLabel('Text colour', { exact: true }).fill('#334455')
  const frame = page.frameLocator('iframe')
  await frame.locator('mark', { hasText: '{{name}}' }).first().waitFor()
  await frame.locator('mark', { hasText: '{{#each products}}' }).waitFor()
  await frame.getByAltText('{{photo}}').waitFor()
  await dashboard.sound(page)
  await page.getByLabel('Subject').fill('For {{name}}')
  await page.getByRole('textbox', { name: 'products[0].name', exact: true }).fill('Tea')
  await page.getByRole('textbox', { name: 'name', exact: true }).fill('Ada')
  await frame.getByText('Good morning, Ada').waitFor()
  await page.getByRole('button', { name: 'Add them' }).click()
  await frame.getByText('Tea').waitFor()
  await frame.locator('mark').first().waitFor({ state: 'detached' })
  await save(page)
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Send a test' }).click()
  await windowHasFocus(page)
  await page.getByRole('dialog').getByLabel('To', { exact: true }).fill('reader@example.com')
  await page.getByRole('dialog').getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('link', { name: 'Open the message' }).waitFor()
  const event = await eventually(
    'delivered',
    async () => (await service.events('?event=delivered&recipient=reader@example.com'))[0],
  )
  const message = event['message'] as { headers: { subject: string } }
  assert.equal(message.headers.subject, 'For Ada')
  const { mjml, sample, template } = await versionOf('offer')
  assert.match(
    mjml,
    /<mj-text font-size="22px" font-weight="600">Good morning, <strong>\{\{name\}\}<\/strong><\/mj-text>/,
  )
  assert.match(mjml, /<mj-all font-family="Georgia, Times, serif" \/>|<mj-text color="#334455" \/>/)
  assert.match(mjml, /<mj-image src="\{\{photo\}\}" alt="Our shop" width="320px" \/>/)
  assert.match(template, /%unsubscribe_url%/)
  assert.deepEqual([sample.name, sample.products[0].name], ['Ada', 'Tea'])
})

test('by keyboard: blocks move, each move is announced, the focus stays, and undo brings everything back', async () => {
  await store('keys', THREE)
  const page = await dashboard.open('/sending/templates/keys')
  await page.getByRole('button', { name: 'Move down: Text: one' }).focus()
  await press(page, 'Enter')
  await page.getByText('Text: one is now number 2 of 3 in row 1.').waitFor()
  await press(page, 'Enter')
  await page.getByText('Text: one is now number 3 of 3 in row 1.').waitFor()
  assert.deepEqual((await names(page)).slice(1), ['Text: two', 'Text: three', 'Text: one'])
  // There is no further step down: the focus is on the block itself.
  assert.equal(await page.evaluate('document.activeElement.innerText'), 'Text: one')
  await press(page, 'Enter')
  await page.getByRole('textbox', { name: 'Words' }).fill('first')
  await page.getByRole('textbox', { name: 'Words' }).press('Control+z')
  await block(page, 'Text: one').waitFor()
  await page.getByRole('textbox', { name: 'Words' }).press('Control+z')
  await page.getByRole('textbox', { name: 'Words' }).press('Control+z')
  await page.getByText('Undone').waitFor()
  assert.deepEqual((await names(page)).slice(1), ['Text: one', 'Text: two', 'Text: three'])
  await page.getByRole('button', { name: 'Redo' }).press('Enter')
  assert.deepEqual((await names(page)).slice(1), ['Text: two', 'Text: one', 'Text: three'])
  await page.getByRole('button', { name: 'Delete: Text: one' }).press('Enter')
  await page.getByText('Text: one is deleted. Undo brings it back.').waitFor()
  assert.equal(await page.evaluate('document.activeElement.innerText'), 'Text: two')
  await page.getByLabel('Columns').waitFor({ state: 'hidden' })
  await block(page, 'Row: text').press('Enter')
  await page.getByLabel('Columns').selectOption('2')
  await page.getByText('Column 2 of 2').waitFor()
  await page.getByRole('button', { name: 'Move down: Text: three' }).press('Enter')
  await page.getByText('Text: three is now number 1 of 1 in row 1, column 2.').waitFor()
  await dashboard.sound(page)
  await save(page)
  assert.match((await versionOf('keys')).mjml, /two<\/mj-text><\/mj-column><mj-column>\s*<mj-text>three/)
})

test('by pointer: a block is dragged to another place', async () => {
  await store('pointer', THREE)
  const page = await dashboard.open('/sending/templates/pointer')
  const middleOf = async (key: string, part: string) => {
    const box = await page.locator(`[data-block="${key}"] ${part}`).first().boundingBox()
    assert.ok(box)
    return { x: box.x + box.width / 2, y: box.y + box.height / 2, height: box.height }
  }
  await block(page, 'Text: three').waitFor()
  const [from, to] = [await middleOf('0.0.2', '.block-handle'), await middleOf('0.0.0', '.block-head')]
  await page.mouse.move(from.x, from.y)
  await page.mouse.down()
  await page.mouse.move(to.x, to.y - to.height / 4, { steps: 4 })
  await page.locator('[data-over="before"]').waitFor()
  await page.mouse.up()
  await page.getByText('Text: three is now number 1 of 3 in row 1.').waitFor()
  assert.deepEqual((await names(page)).slice(1), ['Text: three', 'Text: one', 'Text: two'])
})

test('MJML without a form stays byte for byte, and blocks and source change places at any time', async () => {
  const table = "<mj-table  cellpadding='4'><tr><td>{{a}}</td></tr></mj-table>"
  const source = letter(`<!-- kept -->${table}<mj-text>words</mj-text>`)
  await store('mixed', source)
  const page = await dashboard.open('/sending/templates/mixed')
  await block(page, 'Text: words').click()
  await page.getByRole('textbox', { name: 'Words' }).fill('other *words*')
  await page.getByText('MJML', { exact: true }).click()
  const content = page.getByRole('textbox', { name: 'Content', exact: true })
  const changed = source.replace('words', 'other <em>words</em>')
  assert.equal(await content.inputValue(), changed)
  await content.fill(changed.replace('</mj-column>', '<mj-spacer /></mj-column>'))
  await page.getByText('Blocks', { exact: true }).click()
  await block(page, /^Space$/).waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('button', { name: 'Undo' }).click()
  await block(page, 'Text: words').waitFor()
  await block(page, 'Source: <mj-table').click()
  assert.equal(await page.getByLabel('MJML source').inputValue(), table)
  await page.getByText('HTML', { exact: true }).click()
  await content.fill('<p>Hello</p>')
  await page.getByText('Blocks', { exact: true }).click()
  await page.getByRole('button', { name: 'Start with blocks' }).click()
  await block(page, 'Text: New text').waitFor()
})

test('a variable is inserted where the cursor is', async () => {
  await store('insert', letter('<mj-text>Hello , bye {{city}}</mj-text>'))
  const page = await dashboard.open('/sending/templates/insert')
  await block(page, 'Text: Hello').click()
  await page.getByRole('textbox', { name: 'city', exact: true }).waitFor()
  await page.getByRole('textbox', { name: 'Words' }).focus()
  await press(page, 'Home', ...Array<string>(6).fill('ArrowRight'))
  await page.getByLabel('Insert a variable').selectOption('{{city}}')
  assert.equal(
    await page.getByRole('textbox', { name: 'Words' }).inputValue(),
    'Hello {{city}}, bye {{city}}',
  )
})

test('on a phone blocks are a list, and a colleague sees the sample that was saved', async () => {
  await store('shared', letter('<mj-text>Hello {{name}}{{#if vip}} ({{level}}){{/if}}</mj-text>'))
  const page = await dashboard.open('/sending/templates/shared', { look: PHONE })
  await block(page, 'Text: Hello').tap()
  await page.getByRole('textbox', { name: 'Words' }).waitFor()
  await dashboard.sound(page)
  const status = page.getByRole('status').filter({ hasText: 'Missing variables' })
  assert.deepEqual(await status.locator('code').allInnerTexts(), ['name', 'vip', 'level'])
  await page.getByRole('textbox', { name: 'name', exact: true }).fill('Ada')
  await page.getByLabel('vip', { exact: true }).selectOption('yes')
  await page.getByRole('textbox', { name: 'level', exact: true }).fill('gold')
  await status.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Save', exact: true }).tap()
  await page.getByText('Version initial saved', { exact: false }).waitFor()
  await dashboard.sound(page)
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  const other = await dashboard.open('/sending/templates/shared', { key: body.key.secret })
  await other.frameLocator('iframe').getByText('Hello Ada (gold)').waitFor()
  await block(other, 'Text: Hello').click()
  assert.equal(await other.getByRole('textbox', { name: 'Words' }).isDisabled(), true)
  assert.equal(await other.getByRole('group', { name: /^Add a block/ }).count(), 0)
  await dashboard.sound(other)
})

test('all that can be added compiles without a fault, and its variables are named', async () => {
  const empty = readBlocks(EMPTY_DOCUMENT)
  assert.ok(empty)
  const rows: RowName[] = ['header', 'columns2', 'columns3', 'product', 'footer']
  const items = (['text', 'button', 'image', 'divider', 'spacer'] as const).map(rowWith)
  const doc = [...rows.map(newRow), ...items].reduce((made, each) => insert(made, [0], each), empty)
  const { body } = await dashboard.service.call('POST', '/sendwright/v1/templates/render', {
    json: { engine: 'mjml', content: writeBlocks(doc), mark_missing: true },
  })
  assert.deepEqual(body.errors, [])
  const paths = body.variables.map(({ path }: { path: string[] }) => path.join('.'))
  assert.deepEqual(paths.sort(), [
    ...[
      'address',
      'company',
      'link',
      'products',
      'products.[].link',
      'products.[].name',
      'products.[].picture',
    ],
    'products.[].price',
  ])
})

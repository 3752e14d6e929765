import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { MADE_ANEW, planOf, type TablePlan } from '../migrate/catalog.ts'
import { openSqliteTarget } from '../migrate/sqlite-side.ts'
import { MOVE_RULES } from './rules.ts'

async function tables(t: TestContext): Promise<TablePlan[]> {
  const side = openSqliteTarget(join(await temporaryFolder(t), 'new'))
  await side.prepare()
  const catalog = (await side.catalog()) ?? new Map()
  await side.close()
  return planOf(catalog, catalog)
}

/** Rows name an account, and are the operator's all the same. */
const OF_OPERATOR = ['dynamic_pool_history']

test('every table says what becomes of its rows when an account moves to another pod', async (t) => {
  const plan = await tables(t)
  for (const { name } of plan)
    assert.ok(
      Object.hasOwn(MOVE_RULES, name),
      `Table ${name} is missing in MOVE_RULES of src/carry/account-move/rules.ts. Add one line: moves() for rows with ` +
        "account_id, moves('condition') for others of an account, or stays('why')",
    )
  const names = plan.map(({ name }) => name)
  const gone = Object.keys(MOVE_RULES).filter((name) => !names.includes(name) && !(name in MADE_ANEW))
  assert.deepEqual(gone, [], 'tables that there are no more')
})

test('no table with accounts is left behind, and rules name columns that there are', async (t) => {
  for (const { name, columns } of await tables(t)) {
    const rule = MOVE_RULES[name]
    const has = columns.map((column) => column.name)
    const isLeft = rule?.does === 'stays' || rule?.does === 'copies'
    if (isLeft && has.includes('account_id')) assert.ok(OF_OPERATOR.includes(name), name)
    if (rule?.does !== 'moves') continue
    const changed = [
      ...Object.keys(rule.columns),
      /^\w+/.exec(rule.where)?.[0] ?? '',
      ...(rule.order ?? '').split(', '),
    ]
    for (const column of changed.filter(Boolean)) assert.ok(has.includes(column), `${name}.${column}`)
  }
})

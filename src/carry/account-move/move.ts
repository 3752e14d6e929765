/**
 * Moves a subaccount with all that is its own from one pod to another of the same database (decision 264).
 *
 * 1. No node of either pod runs, and none can start: both are locked as for a copy. The directory says `moving` for both.
 * 2. Figures of both are made up to the same time, so that their rows mean the same.
 * 3. Files are copied and compared.
 * 4. One transaction copies the rows, compares them, lets the directory lead to the target, and deletes them in the source. A
 *    process that dies before it ends has changed nothing, so the same command runs again.
 * 5. The source's files are removed. Until then an entry of the directory says that they are there.
 */
import { failPoint } from '../../base/flow/fail-point.ts'
import { LINKED, SOURCES } from '../../platform/store/pods/directory.ts'
import { schemaOf } from '../../platform/store/pods/pod.ts'
import { openPostgres } from '../../platform/store/postgres/postgres.ts'
import { rollUp } from '../../watching/metrics/storage/roll-up.ts'
import { type BlobPlace, compareBlobs, copyBlobs, namedBlobs } from '../migrate/blobs.ts'
import { planOf, type TablePlan } from '../migrate/catalog.ts'
import { openPostgresTarget } from '../migrate/postgres-side.ts'
import type { Side, Target, Writer } from '../migrate/side.ts'
import { MigrationError } from '../migrate/values.ts'
import { MOVE_RULES, type MoveRule, REFUSALS, TARGET_REFUSAL } from './rules.ts'

export interface AccountMove {
  url: string
  /** 24 hexadecimal digits. */
  accountId: string
  to: string
  /** `to` null: the target's folder is not named. */
  places(from: string): { from: BlobPlace; to: BlobPlace | null }
  /** Runs with both pods still locked, after the directory has changed. */
  settle(): Promise<void>
}

export interface AccountMoveResult {
  account: string
  /** Null: the account was in the pod already, and its files are there now. */
  from: string | null
  to: string
  /** Tables with rows. */
  tables: { name: string; rows: number }[]
  files: number
}

interface Pods {
  from: Target
  to: Target
  /** Their names. */
  names: { from: string; to: string }
}

/** @throws MigrationError with whole sentences, StoreUnavailable, StoreFull */
export async function moveAccount(move: AccountMove): Promise<AccountMoveResult> {
  const { accountId: account, to, url } = move
  const owner = await ownerOf(move)
  if (owner === to) return { account, from: null, to, tables: [], files: await finish(move) }
  const names = { from: owner, to }
  // Their figures are made by stores, which do not open while the pods are locked.
  await withPods(url, names, (pods) => refuse(pods, account))
  await alignFigures(url, names)
  const result = await withPods(url, names, async (pods) => {
    await refuse(pods, account)
    const places = await checkedPlaces(move, pods)
    await say(pods, 'moving')
    failPoint('move-before-copy')
    try {
      await copyFiles(pods, account, places)
      const tables = await moveRows(pods, account, places)
      failPoint('move-after-commit')
      await move.settle()
      return { account, ...names, tables }
    } catch (error) {
      await say(pods, 'open').catch(() => {})
      throw refused(error) ?? error
    }
  })
  return { ...result, files: await finish(move) }
}

/** Data that the target cannot take, or a lock that another session holds. Null: another error. */
function refused(error: unknown): MigrationError | null {
  const { code, message } = error as { code?: unknown; message?: string }
  if (!/^(?:2[23]|55)...$/.test(String(code))) return null
  return new MigrationError(`Nothing was moved: PostgreSQL says "${message}".`, { cause: error })
}

/** The pod that has the account. */
async function ownerOf({ url, accountId, to }: AccountMove): Promise<string> {
  return withPod(url, to, async ({ query }) => {
    const pods = await query("SELECT 1 WHERE to_regclass('sendwright_pods.pods') IS NOT NULL")
    const states = pods.length > 0 ? await query('SELECT name, state FROM sendwright_pods.pods') : []
    const target = states.find(([name]) => name === to)
    if (!target || target[1] === 'moved') throw new MigrationError(`There is no pod "${to}".`)
    const [entry] = await query(
      "SELECT pod FROM sendwright_pods.entries WHERE kind = 'account' AND value = ?",
      [accountId],
    )
    if (!entry) throw new MigrationError(`No pod has an account "${accountId}".`)
    return String(entry[0])
  })
}

async function withPod<T>(url: string, pod: string, use: (side: Target) => Promise<T>): Promise<T> {
  const side = await openPostgresTarget(url, pod)
  try {
    return await use(side)
  } finally {
    await side.close()
  }
}

/** Nobody starts in either meanwhile. */
const withPods = <T>(url: string, names: Pods['names'], use: (pods: Pods) => Promise<T>): Promise<T> =>
  withPod(url, names.from, (from) => withPod(url, names.to, (to) => use({ from, to, names })))

/** What the words in capitals of rules stand for. */
type Literals = Record<string, string>

const accountLiteral = (account: string): Literals => ({ ACCOUNT: `'${account}'` })

/** `pod`: which one it is about. */
const inSql = (sql: string, literals: Literals, pod: string, to: string): string =>
  sql
    .replaceAll(/\b(?:ACCOUNT|FIRST_ACCOUNT|SCOPES|NEW_TX)\b/g, (word) => literals[word] ?? word)
    .replaceAll('POD.', `${schemaOf(pod)}.`)
    .replaceAll('TARGET.', `${schemaOf(to)}.`)

/** @throws MigrationError if a node runs, or the account cannot move */
async function refuse({ from, to, names }: Pods, account: string): Promise<void> {
  for (const side of [from, to]) {
    const reason = await side.usedBy()
    if (reason !== null) throw new MigrationError(reason)
  }
  const cannot = (why: string) => new MigrationError(`Account "${account}" cannot move: ${why}.`)
  const rules = Object.entries(MOVE_RULES).flatMap(([table, rule]) =>
    rule.does === 'refuses'
      ? [[`SELECT 1 FROM ${table} WHERE ${rule.where} LIMIT 1`, rule.why] as const]
      : [],
  )
  for (const [sql, why] of [...REFUSALS, ...rules])
    if ((await from.query(inSql(sql, accountLiteral(account), names.from, names.to))).length > 0)
      throw cannot(why)
  if ((await to.query(TARGET_REFUSAL)).length > 0)
    throw new MigrationError(
      `Pod "${names.to}" has not read the events that it was made with: start it, and stop it a minute later.`,
    )
  if ((await to.query('SELECT 1 FROM accounts WHERE parent_id IS NULL')).length !== 1)
    throw new MigrationError(`Pod "${names.to}" has no first account: start it once.`)
}

/** Rows of days, weeks and months exist up to the same times in both. */
async function alignFigures(url: string, { from, to }: Pods['names']): Promise<void> {
  const now = Date.now()
  for (const pod of [from, to]) {
    const store = await openPostgres(url, { pod })
    await rollUp(store, now).finally(() => store.close())
  }
}

const PLACES =
  'SELECT unit, CASE WHEN unit = 4 THEN 0 ELSE written END, until FROM figure_places ORDER BY unit'

async function moveRows(
  { from, to, names }: Pods,
  account: string,
  places: Places,
): Promise<AccountMoveResult['tables']> {
  if (String(await from.query(PLACES)) !== String(await to.query(PLACES)))
    throw new MigrationError(
      'The figures of the two pods do not reach to the same day. Try again in two hours.',
    )
  const plan = planOf((await from.catalog()) ?? new Map(), (await to.catalog()) ?? new Map())
  const all = plan.map((table) => ({ table, rule: ruleOf(table) }))
  // Rows that are found by those of other tables come after them, and go before them.
  const tables = all.toSorted((a, b) => Number(isFoundByOthers(a.rule)) - Number(isFoundByOthers(b.rule)))
  const moved = tables.flatMap(({ table, rule }) => (rule.does === 'moves' ? [{ table, rule }] : []))
  const rows: AccountMoveResult['tables'] = []
  const literals = accountLiteral(account)
  const sql = (text: string, pod = names.from) => inSql(text, literals, pod, names.to)
  await from.write(async (writer) => {
    await writer.run('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
    await writer.run(`SET LOCAL lock_timeout = '${LOCK_WAIT}'`)
    await writer.run(`LOCK TABLE ${moved.map(({ table }) => table.name).join(', ')} IN EXCLUSIVE MODE`)
    // Triggers name no schema: those of events write their tags.
    const visit = (pod: string) => writer.run(`SET LOCAL search_path = ${schemaOf(pod)}`)
    await visit(names.to)
    const [first] = await from.query('SELECT id FROM accounts WHERE parent_id IS NULL')
    const [tx] = await from.query('SELECT pg_current_xact_id()::text')
    literals['FIRST_ACCOUNT'] = `'${first?.[0]}'`
    literals['NEW_TX'] = `${tx?.[0]}::bigint`
    for (const { table, rule } of tables) {
      if (rule.does === 'moves') await writer.run(sql(insertOf(table, rule)))
      if (table.name === 'figure_scopes') literals['SCOPES'] = await scopesLiteral(from, sql)
      if (rule.does === 'copies') await writer.run(sql(copyOf(table)))
    }
    failPoint('move-between')
    for (const { table, rule } of moved) {
      const [wanted] = await from.query(sql(digestOf(table, rule, 'source')))
      const [found] = await from.query(sql(digestOf(table, rule, 'target'), names.to))
      if (String(wanted) !== String(found))
        throw new MigrationError(
          `Table ${table.name} of pod "${names.to}" would not have the same rows: ${wanted?.[0]} here, ${found?.[0]} there. Nothing was changed.`,
        )
      if (wanted && Number(wanted[0]) > 0) rows.push({ name: table.name, rows: Number(wanted[0]) })
    }
    // Real transactions have higher numbers. A follower that has read nothing yet begins after what was read elsewhere.
    await writer.run('UPDATE event_followers SET tx = 1, seq = 0 WHERE tx = 0')
    await lead(writer, names, sql)
    await visit(names.from)
    await deleteRows(from, tables, rows, sql)
    if (places.to !== null)
      await writer.run("INSERT INTO sendwright_pods.entries (kind, value, pod) VALUES ('files', ?, ?)", [
        `${account} ${places.from.name}`,
        names.from,
      ])
    await say({ from, names }, 'open', writer)
    // A process may have passed the locks before they were taken. Its writes to the source wait for this transaction.
    for (const schema of [names.from, names.to].map(schemaOf))
      if ((await to.query(`SELECT 1 FROM ${schema}.nodes WHERE ${seenLately(schema)}`)).length > 0)
        throw new MigrationError('Meanwhile a node was started. Nothing was moved: stop it.')
    failPoint('move-before-commit')
  })
  return rows
}

/** The numbers of the account's scopes in both pods. */
async function scopesLiteral({ query }: Pick<Side, 'query'>, sql: (text: string) => string): Promise<string> {
  const read = (schema: string) =>
    query(sql(`SELECT domain_name, no::text FROM ${schema}.figure_scopes WHERE account_id = ACCOUNT`))
  const there = new Map((await read('TARGET')).map(([name, no]) => [name, no]))
  const numbers = (await read('POD')).map(([name, no]) => [no, Number(there.get(name))])
  return `'${JSON.stringify(Object.fromEntries(numbers))}'::jsonb`
}

const LOCK_WAIT = '10s'
/** As a copy judges nodes (migrate/postgres-side.ts), by another connection: this one sees its own moment only. */
const seenLately = (schema: string) => `last_seen_at > ${schema}.time_from_now(-10000)`

function ruleOf({ name }: TablePlan): MoveRule {
  const rule = MOVE_RULES[name]
  if (!rule) throw new TypeError(`Table ${name} has no rule`)
  return rule
}

const isFoundByOthers = (rule: MoveRule): boolean => 'where' in rule && rule.where.includes('SELECT')

type Moves = Extract<MoveRule, { does: 'moves' }>

/** Without the number that the target gives each row. */
const columnsOf = ({ columns, identity }: TablePlan): string[] =>
  columns.map(({ name }) => name).filter((name) => name !== identity)

function insertOf(table: TablePlan, { where, columns, order }: Moves): string {
  const names = columnsOf(table)
  const values = names.map((name) => columns[name]?.becomes ?? name)
  return `INSERT INTO TARGET.${table.name} (${names.join(', ')}) SELECT ${values.join(', ')} FROM POD.${table.name}
    WHERE ${where} ${order === undefined ? '' : `ORDER BY ${order}`}`
}

function copyOf(table: TablePlan): string {
  const names = columnsOf(table).join(', ')
  return `INSERT INTO TARGET.${table.name} (${names}) SELECT ${names} FROM POD.${table.name} ON CONFLICT DO NOTHING`
}

/** Number of rows, and two sums of digests that no order changes. */
function digestOf(table: TablePlan, { where, columns }: Moves, side: 'source' | 'target'): string {
  const compared = columnsOf(table).flatMap((name) => {
    const { becomes, compared } = columns[name] ?? {}
    if (compared === null) return []
    return [compared ?? (side === 'source' ? becomes : undefined) ?? name]
  })
  const sum = (seed: number) => `coalesce(sum(hashtextextended(whole, ${seed})), 0)::text`
  return `SELECT count(*), ${sum(0)}, ${sum(1)}
    FROM (SELECT ROW(${compared.join(', ')})::text AS whole FROM POD.${table.name} WHERE ${where}) AS found`
}

/** The directory has the target for all that the target now holds. */
async function lead(
  writer: Writer,
  { from, to }: Pods['names'],
  sql: (text: string) => string,
): Promise<void> {
  // Entries that it has already are as they were. Citus takes no UPDATE of the directory by rows of a pod.
  for (const [kind, values] of SOURCES)
    await writer.run(
      `INSERT INTO sendwright_pods.entries (kind, value, pod) SELECT '${kind}', value, '${to}' FROM (${values}) AS found (value)
        ON CONFLICT (kind, value) DO UPDATE SET pod = excluded.pod WHERE entries.pod = '${from}'`,
    )
  await writer.run(
    sql(`INSERT INTO sendwright_pods.entries (kind, value, pod) SELECT 'link', value, '${to}' FROM (${LINKED}) AS found (value)
      ON CONFLICT (kind, value) DO UPDATE SET pod = excluded.pod`),
  )
}

/** @throws MigrationError unless just those go that were copied */
async function deleteRows(
  { query }: Pick<Side, 'query'>,
  tables: readonly { table: TablePlan; rule: MoveRule }[],
  copied: AccountMoveResult['tables'],
  sql: (text: string) => string,
): Promise<void> {
  const deleted = tables.flatMap(({ table: { name }, rule }) =>
    rule.does === 'moves' || rule.does === 'drops' ? [{ name, where: rule.where, does: rule.does }] : [],
  )
  for (const { name, where, does } of deleted.toReversed()) {
    const [count] = await query(
      sql(`WITH gone AS (DELETE FROM POD.${name} WHERE ${where} RETURNING 1) SELECT count(*) FROM gone`),
    )
    const wanted = copied.find((table) => table.name === name)?.rows ?? 0
    if (does === 'moves' && Number(count?.[0]) !== wanted)
      throw new MigrationError(`Table ${name} has changed meanwhile. Nothing was moved.`)
  }
}

/** Sets the state of both pods, which `pods list` shows. */
async function say(
  { from, names }: Pick<Pods, 'from' | 'names'>,
  state: 'moving' | 'open',
  writer?: Writer,
): Promise<void> {
  const run = (to: Writer) =>
    to.run('UPDATE sendwright_pods.pods SET state = ? WHERE name IN (?, ?)', [state, names.from, names.to])
  await (writer ? run(writer) : from.write(run))
}

/** `to` null: the files stay where they are. */
type Places = { from: BlobPlace; to: BlobPlace | null }

async function checkedPlaces({ places, accountId }: AccountMove, { from, names }: Pods): Promise<Places> {
  const found = places(names.from)
  const [rest] = await from.query(LEFT, [accountId])
  if (rest)
    throw new MigrationError(
      `The files of an earlier move are still in pod "${rest[1]}": run "sendwright pods move-account ${accountId} --to ${names.from}" again first.`,
    )
  if (found.to !== null) return { ...found, to: found.to.name === found.from.name ? null : found.to }
  for await (const _ of namedBlobs(from, accountId))
    throw new MigrationError(
      `The account has files: name the data folder of pod "${names.to}" with --to-data.`,
    )
  return found
}

async function copyFiles({ from }: Pods, account: string, places: Places): Promise<void> {
  const { result } = await compareBlobs(from, places.from, null, () => {}, account)
  if (result.missing.length > 0)
    throw new MigrationError(
      `${result.missing.length} files of the account are not in ${places.from.name}. If that is where its pod has them, they are lost: delete their messages first.`,
    )
  if (places.to === null) return
  await copyBlobs(from, places.from, places.to, () => {}, account)
  const { differences } = await compareBlobs(from, places.from, places.to, () => {}, account)
  if (differences.length > 0) throw new MigrationError(differences.join(' '))
}

/** The place whose files of an account can go, and its pod. */
const LEFT = `SELECT value, pod FROM sendwright_pods.entries WHERE kind = 'files' AND starts_with(value, ? || ' ')`

/** Removes the files that the former pod has. Returns how many the account has. */
async function finish({ url, accountId, to, places }: AccountMove): Promise<number> {
  return withPod(url, to, async (side) => {
    const [left] = await side.query(LEFT, [accountId])
    let files = 0
    const kept = left ? places(String(left[1])) : null
    if (left && kept && (kept.to === null || `${accountId} ${kept.from.name}` !== left[0]))
      throw new MigrationError(
        `The account has moved. Its files are still in ${String(left[0]).slice(accountId.length + 1)} too: run the command with the same settings again.`,
      )
    for await (const blob of namedBlobs(side, accountId)) {
      files++
      if (kept?.to && (await kept.to.size(blob)) === (await kept.from.size(blob)))
        await kept.from.remove(blob)
    }
    failPoint('move-after-files')
    await side.write((writer) =>
      writer.run("DELETE FROM sendwright_pods.entries WHERE kind = 'files' AND value = ?", [left?.[0] ?? '']),
    )
    return files
  })
}

/** Inbound routes: expression, actions, priority, and a test of an expression. Calls /v3/routes. */
import { Button, Text, Textarea, TextInput } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { useTyped } from '../base/use-typed.ts'
import { useMay } from '../session.ts'
import { AddButton } from '../shared/forms/add-button.tsx'
import { FormWindow } from '../shared/forms/form-window.tsx'
import { useSending } from '../shared/forms/use-sending.ts'
import { BUTTONS, type Column, DataTable } from '../shared/page/data-table.tsx'
import { notify } from '../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../shared/page/page.tsx'
import { placeOf, placePath, skipLinks } from '../shared/page/paging.ts'
import { EmptyState } from '../shared/page/states.tsx'
import {
  createRoute,
  deleteRoute,
  matchQuery,
  ROUTES_KEY,
  ROUTES_PAGE_SIZE,
  ROUTES_PATH,
  type Route,
  type RouteFields,
  routeQuery,
  routesQuery,
  updateRoute,
} from './routes-api.ts'
import type { RoutesSearch } from './routes-search.ts'
import { TEXT } from './text.ts'
import './routes.css'

const route = getRouteApi('/routes')
const nameOf = ({ description, expression }: Route) => description || expression

export default function RoutesPage() {
  const { at, address, add, edit } = route.useSearch()
  const navigate = useNavigate()
  const mayChange = useMay({ area: 'routes', access: 'write' })
  const path = placePath(ROUTES_PATH, at)
  const list = useQuery({ ...routesQuery(path), placeholderData: keepPreviousData })
  const go = (search: RoutesSearch, replace = true) => void navigate({ to: '/routes', replace, search })
  const here: RoutesSearch = { ...(at !== undefined && { at }), ...(address !== undefined && { address }) }
  const skip = Number(new URLSearchParams(at).get('skip') ?? 0)
  const button = mayChange && <AddButton label={TEXT.add} onClick={() => go({ ...here, add: 'yes' })} />
  const columns: Column<Route>[] = [
    {
      header: TEXT.route,
      width: '28%',
      cell: (each) =>
        mayChange ? (
          <Link to="/routes" replace search={{ ...here, edit: each.id }} className="row-link breakable">
            {each.description || TEXT.unnamed}
          </Link>
        ) : (
          <strong className="breakable">{each.description || TEXT.unnamed}</strong>
        ),
    },
    { header: TEXT.priority, align: 'end', cell: ({ priority }) => priority },
    { header: TEXT.expression, cell: ({ expression }) => <code className="breakable">{expression}</code> },
    {
      header: TEXT.actions,
      cell: ({ actions }) => <code className="breakable">{actions.join(', ')}</code>,
    },
    ...(mayChange ? [{ ...BUTTONS, cell: (each: Route) => <DeleteRoute route={each} /> }] : []),
  ]
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} actions={button} />
      <Tester
        applied={address ?? ''}
        apply={(value) => go({ ...(at && { at }), ...(value !== '' && { address: value }) })}
      />
      <Panel flush>
        <DataTable
          label={TEXT.title}
          columns={columns}
          rows={list.data?.items}
          rowKey={({ id }) => id}
          error={list.error}
          retry={list.refetch}
          isStale={list.isPlaceholderData}
          links={list.data && skipLinks(ROUTES_PATH, skip, ROUTES_PAGE_SIZE, list.data.total_count)}
          onPage={(link) => {
            const place = placeOf(link)
            go({ ...(address && { address }), ...(place !== undefined && { at: place }) }, false)
          }}
          empty={
            <EmptyState icon="route" title={TEXT.none} action={button}>
              {TEXT.noneWhy}
            </EmptyState>
          }
        />
      </Panel>
      {mayChange && add === 'yes' && <RouteForm onClose={() => go(here)} />}
      {mayChange && edit !== undefined && <EditRoute key={edit} id={edit} onClose={() => go(here)} />}
    </Page>
  )
}

/** Says which route takes mail to an address. */
function Tester({ applied, apply }: { applied: string; apply: (address: string) => void }) {
  const [typed, change] = useTyped(applied, apply)
  const match = useQuery(matchQuery(applied))
  return (
    <Panel title={TEXT.tester}>
      <TextInput
        aria-label={TEXT.address}
        description={TEXT.testerWhy}
        placeholder={TEXT.addressPlaceholder}
        inputMode="email"
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        value={typed}
        onChange={(event) => change(event.currentTarget.value)}
        data-search
      />
      <div role="status" className="route-match">
        {applied !== '' && match.data && (
          <>
            <strong className="breakable">{TEXT.takes(nameOf(match.data))}</strong>
            <code className="breakable">{match.data.actions.join(', ')}</code>
            <span className="dimmed">{TEXT.first}</span>
          </>
        )}
        {applied !== '' && match.data === null && <strong>{TEXT.takesNone}</strong>}
        {match.error && (
          <Text size="sm" c="red" className="breakable">
            {match.error.message}
          </Text>
        )}
      </div>
    </Panel>
  )
}

function useChanged() {
  const queries = useQueryClient()
  return () => void queries.invalidateQueries({ queryKey: [ROUTES_KEY] })
}

/** Deletes at once; the way back creates the route anew, with another id. */
function DeleteRoute({ route: deleted }: { route: Route }) {
  const changed = useChanged()
  const removal = useSending({
    mutationFn: () => deleteRoute(deleted.id),
    onSuccess() {
      changed()
      const undo = async () => {
        const result = await createRoute(deleted).catch((error: Error) => error)
        notify(result instanceof Error ? { text: result.message, tone: 'bad' } : { text: TEXT.added })
        changed()
      }
      notify({ text: TEXT.removed, undo: () => void undo() })
    },
  })
  return (
    <>
      <Button
        variant="default"
        size="xs"
        aria-label={TEXT.removeOf(nameOf(deleted))}
        loading={removal.isPending}
        onClick={() => removal.mutate()}
      >
        {TEXT.remove}
      </Button>
      {removal.error && (
        <Text size="xs" c="red" role="alert" className="breakable">
          {removal.error.message}
        </Text>
      )}
    </>
  )
}

function EditRoute({ id, onClose }: { id: string; onClose: () => void }) {
  const { data } = useQuery(routeQuery(id))
  return data === undefined ? null : <RouteForm route={data} onClose={onClose} />
}

/** Without `route`: adds one. */
function RouteForm({ route: edited, onClose }: { route?: Route; onClose: () => void }) {
  const [fields, setFields] = useState({
    priority: edited?.priority ?? 0,
    description: edited?.description ?? '',
    expression: edited?.expression ?? '',
    actions: edited?.actions.join('\n') ?? '',
  })
  const actions = fields.actions
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const changed = useChanged()
  const saving = useSending({
    mutationFn() {
      const given: RouteFields = { ...fields, expression: fields.expression.trim(), actions }
      return edited === undefined ? createRoute(given) : updateRoute(edited.id, given)
    },
    onSuccess() {
      changed()
      notify({ text: edited === undefined ? TEXT.added : TEXT.saved })
      onClose()
    },
  })
  const set = (part: Partial<typeof fields>) => {
    saving.reset()
    setFields({ ...fields, ...part })
  }
  return (
    <FormWindow
      title={edited === undefined ? TEXT.add : TEXT.edit}
      submit={edited === undefined ? TEXT.add : TEXT.save}
      busy={saving.isPending}
      isComplete={fields.expression.trim() !== '' && actions.length > 0}
      error={saving.error}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.description}
        placeholder={TEXT.descriptionPlaceholder}
        autoComplete="off"
        value={fields.description}
        onChange={(event) => set({ description: event.currentTarget.value })}
        data-autofocus
      />
      <TextInput
        label={TEXT.expression}
        placeholder={TEXT.expressionPlaceholder}
        classNames={{ input: 'route-code' }}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        value={fields.expression}
        onChange={(event) => set({ expression: event.currentTarget.value })}
      />
      <Textarea
        label={TEXT.actions}
        description={TEXT.actionsWhy}
        placeholder={TEXT.actionsPlaceholder}
        classNames={{ input: 'route-code' }}
        rows={3}
        autoCapitalize="none"
        spellCheck={false}
        value={fields.actions}
        onChange={(event) => set({ actions: event.currentTarget.value })}
      />
      <details className="route-help">
        <summary>{TEXT.help}</summary>
        <Examples examples={TEXT.expressions} use={(expression) => set({ expression })} />
        <Examples
          examples={TEXT.actionExamples}
          use={(action) => set({ actions: [...actions, action].join('\n') })}
        />
      </details>
      <TextInput
        label={TEXT.priority}
        description={TEXT.priorityWhy}
        inputMode="numeric"
        value={fields.priority}
        onChange={(event) => set({ priority: Number.parseInt(event.currentTarget.value, 10) || 0 })}
      />
    </FormWindow>
  )
}

function Examples(props: {
  examples: readonly (readonly [text: string, meaning: string])[]
  use: (text: string) => void
}): ReactNode {
  const { examples, use } = props
  return (
    <ul>
      {examples.map(([text, meaning]) => (
        <li key={text}>
          <code className="breakable">{text}</code>
          <span className="dimmed">{meaning}</span>
          <Button
            variant="subtle"
            size="compact-xs"
            aria-label={TEXT.helpUseOf(text)}
            onClick={() => use(text)}
          >
            {TEXT.helpUse}
          </Button>
        </li>
      ))}
    </ul>
  )
}

/** Editor of a template's version: code, MJML, variables, checks while typing. */
import { Button, Group, Modal, Skeleton, Stack, Switch, Text, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useBlocker, useNavigate } from '@tanstack/react-router'
import { type FormEvent, lazy, type ReactNode, Suspense, useState } from 'react'
import { Confirm } from '../../base/confirm.tsx'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { Choice } from '../../shared/forms/choice.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { notify } from '../../shared/page/notices.tsx'
import { withSearch } from '../../shared/page/search.ts'
import { CodeInput } from './code-input.tsx'
import { useContentHistory } from './content-history.ts'
import { DraftCheck, Preview } from './preview.tsx'
import { readSample } from './sample.ts'
import { SampleFields } from './sample-fields.tsx'
import {
  createVersion,
  type Draft,
  type Rendered,
  saveVersion,
  type Template,
  type TemplateHeaders,
  type VersionSummary,
} from './templates-api.ts'
import { renderQuery, TEMPLATES_KEY, VERSION_SAVING } from './templates-queries.ts'
import { readTemplateSearch } from './templates-search.ts'
import { TEXT } from './text.ts'

const BlockEditor = lazy(() => import('./blocks/block-editor.tsx'))
const route = getRouteApi('/sending/templates/$name')

const RENDER_PAUSE_MS = 300 // after the last key

interface EditorProps {
  template: Template & { versions: VersionSummary[] }
  domain: string
  /** Undefined: the first one is written. */
  version: VersionSummary | undefined
  stored: Draft
}

/** Whether both are stored as the same: the sample's text may be spaced in another way. */
const isSame = (a: Draft, b: Draft) => storedForm(a) === storedForm(b)
const storedForm = (draft: Draft) => JSON.stringify({ ...draft, sample: readSample(draft.sample) })

/** What this editor belongs to; other parts of the URL may change while it is open. */
function placeOf({ pathname, search }: { pathname: string; search: object }): string {
  const { domain, version, view } = readTemplateSearch({ ...search })
  return JSON.stringify([pathname, domain, version, view ?? 'edit'])
}

/** One version: its content on the left, what becomes of it on the right. */
export function Editor({ template, domain, version, stored }: EditorProps) {
  const mayWrite = useMay({ area: 'templates', access: 'write' })
  const [draft, setDraft] = useState(stored)
  const [naming, setNaming] = useState(version === undefined)
  const isChanged = mayWrite && !isSame(draft, stored)
  const isSound = 'value' in readSample(draft.sample)
  const rendered = useRendered(draft)
  const save = useSave({ template, domain, version, stored })
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next }) => isChanged && placeOf(current) !== placeOf(next),
    enableBeforeUnload: isChanged,
    withResolver: true,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (isChanged && isSound && version !== undefined && !save.isPending) save.mutate(draft)
  }
  return (
    <div className="editor">
      <form className="editor-side" onSubmit={submit} aria-label={TEXT.views.edit}>
        <HeaderFields
          headers={draft.headers}
          disabled={!mayWrite}
          onChange={(headers) => setDraft({ ...draft, headers })}
        />
        <Content
          draft={draft}
          variables={rendered.variables}
          disabled={!mayWrite}
          onChange={(change) => setDraft((old) => ({ ...old, ...change }))}
        />
        {save.error && (
          <Text size="sm" c="red" role="alert" className="breakable">
            {save.error.message}
          </Text>
        )}
        {mayWrite && (
          <div className="editor-actions">
            {isChanged && (
              <span className="tag" role="status">
                {TEXT.unsaved}
              </span>
            )}
            <span className="grow" />
            {isChanged && version && (
              <Button variant="subtle" size="sm" onClick={() => setDraft(stored)}>
                {TEXT.discard}
              </Button>
            )}
            <Button
              variant="default"
              size="sm"
              onClick={() => setNaming(true)}
              disabled={draft.content === '' || !isSound}
            >
              {TEXT.saveNew}
            </Button>
            {version && (
              <Button
                type="submit"
                size="sm"
                loading={save.isPending}
                disabled={!isChanged || !isSound}
                {...(version.active && { title: TEXT.saveLive })}
              >
                {TEXT.save}
              </Button>
            )}
          </div>
        )}
      </form>
      <div className="editor-side">
        <Preview draft={rendered.draft} variables={rendered.sample} />
        <SampleFields
          variables={rendered.variables}
          text={draft.sample}
          onChange={(sample) => setDraft({ ...draft, sample })}
        />
        <DraftCheck domain={domain} draft={rendered.draft} variables={rendered.sample} />
      </div>
      <Modal
        opened={naming && mayWrite && draft.content !== ''}
        onClose={() => setNaming(false)}
        title={<strong>{TEXT.newVersion}</strong>}
        centered
      >
        <NewVersion
          template={template}
          domain={domain}
          draft={draft}
          onClose={() => setNaming(false)}
          onStored={() => setDraft(stored)}
        />
      </Modal>
      <Confirm
        opened={leaving.status === 'blocked'}
        title={TEXT.leave}
        consequence={TEXT.leaveWhy}
        action={TEXT.leaveAction}
        busy={false}
        failure={undefined}
        onConfirm={() => leaving.proceed?.()}
        onClose={() => leaving.reset?.()}
      />
    </div>
  )
}

/** Saves the version's content; the notice takes it back. */
function useSave({ template, domain, version, stored }: EditorProps) {
  const queries = useQueryClient()
  const store = async (tag: string, draft: Draft) => {
    const answer = await saveVersion(domain, template.name, tag, draft)
    await queries.invalidateQueries({ queryKey: [TEMPLATES_KEY, domain, template.name] })
    return answer
  }
  return useSending({
    mutationKey: VERSION_SAVING,
    mutationFn: async (draft: Draft) => valueOrThrow(await store(version?.tag ?? '', draft)),
    onSuccess() {
      const tag = version?.tag ?? ''
      notify({
        text: version?.active ? `${TEXT.saved(tag)}. ${TEXT.saveLive}` : TEXT.saved(tag),
        undo: () =>
          void store(tag, stored).then((answer) => {
            if (!answer.ok) notify({ text: answer.failure.message, tone: 'bad' })
          }),
      })
    },
  })
}

const HEADERS = [
  ['Subject', TEXT.subject, 'Welcome, {{name}}'],
  ['From', TEXT.from, 'Shop <hello@example.com>'],
  ['Reply-To', TEXT.replyTo, ''],
] as const

function HeaderFields(props: {
  headers: TemplateHeaders
  disabled: boolean
  onChange: (headers: TemplateHeaders) => void
}) {
  const { headers, disabled, onChange } = props
  const change = (name: keyof TemplateHeaders, text: string) => {
    const { [name]: _, ...others } = headers
    onChange(text === '' ? others : { ...others, [name]: text })
  }
  return (
    <div className="editor-headers">
      {HEADERS.map(([name, label, example]) => (
        <TextInput
          key={name}
          label={label}
          size="sm"
          placeholder={example}
          autoComplete="off"
          spellCheck={name === 'Subject'}
          maxLength={998}
          readOnly={disabled}
          value={headers[name] ?? ''}
          onChange={(event) => change(name, event.currentTarget.value)}
        />
      ))}
    </div>
  )
}

type Way = keyof typeof TEXT.ways

/** The content, edited as blocks or as source; what was done in one way is undone in the other. */
function Content(props: {
  draft: Draft
  variables: Rendered['variables']
  disabled: boolean
  onChange: (change: Partial<Draft>) => void
}) {
  const { draft, variables, disabled, onChange } = props
  const { write } = route.useSearch()
  const navigate = useNavigate({ from: '/sending/templates/$name' })
  const history = useContentHistory(draft.content, (content) => onChange({ content }))
  const way: Way = draft.engine === 'handlebars' ? 'handlebars' : write === 'source' ? 'mjml' : 'blocks'
  const choice = (
    <Choice<Way>
      label={TEXT.engine}
      size="xs"
      options={Object.entries(TEXT.ways) as [Way, string][]}
      value={way}
      onChange={(chosen) => {
        onChange({ engine: chosen === 'handlebars' ? 'handlebars' : 'mjml' })
        void navigate({
          replace: true,
          search: (old) => withSearch(old, { write: chosen === 'mjml' ? 'source' : undefined }),
        })
      }}
    />
  )
  if (way === 'blocks')
    return (
      <Blocks beside={choice}>
        <BlockEditor content={draft.content} history={history} variables={variables} disabled={disabled} />
      </Blocks>
    )
  return (
    <CodeInput
      label={TEXT.content}
      description={TEXT.contentHint}
      value={draft.content}
      disabled={disabled}
      onChange={(content) => history.change(content, 'source')}
      beside={choice}
    />
  )
}

/** The editor of blocks is loaded when it is opened. */
function Blocks({ beside, children }: { beside: ReactNode; children: ReactNode }) {
  return (
    <div>
      <div className="code-input-head">
        <span>{TEXT.content}</span>
        <span className="grow" />
        {beside}
      </div>
      <Suspense fallback={<Skeleton height={460} role="status" aria-label={TEXT.content} />}>
        {children}
      </Suspense>
    </div>
  )
}

/** The draft that is shown, a moment after the last key, and what it uses. */
function useRendered(draft: Draft) {
  const [shown] = useDebouncedValue(draft, RENDER_PAUSE_MS)
  const read = readSample(shown.sample)
  const sample = 'value' in read ? read.value : undefined
  const { data } = useQuery(renderQuery(shown, sample))
  return { draft: shown, sample, variables: data?.variables ?? NO_VARIABLES }
}

const NO_VARIABLES: Rendered['variables'] = []

function NewVersion(props: {
  template: Template & { versions: VersionSummary[] }
  domain: string
  draft: Draft
  onClose: () => void
  onStored: () => void
}) {
  const { template, domain, draft, onClose, onStored } = props
  const [tag, setTag] = useState(() => nextTag(template.versions))
  const [comment, setComment] = useState('')
  const [active, setActive] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate({ from: '/sending/templates/$name' })
  const creation = useSending({
    mutationKey: VERSION_SAVING,
    mutationFn: async () =>
      valueOrThrow(
        await createVersion(
          domain,
          template.name,
          { tag: tag.trim(), comment: comment.trim(), active },
          draft,
        ),
      ),
    async onSuccess() {
      notify({ text: TEXT.versionSaved(tag.trim().toLowerCase()) })
      onStored() // nothing is unsaved any more
      await queries.invalidateQueries({ queryKey: [TEMPLATES_KEY, domain, template.name] })
      onClose()
      await navigate({
        search: (old) => ({ ...old, version: tag.trim().toLowerCase() }),
        ignoreBlocker: true,
      })
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!creation.isPending) creation.mutate()
      }}
    >
      <Stack gap="md">
        <TextInput
          label={TEXT.tag}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          value={tag}
          error={creation.error?.message}
          onChange={(event) => {
            setTag(event.currentTarget.value)
            creation.reset()
          }}
          data-autofocus
        />
        <TextInput
          label={TEXT.comment}
          description={TEXT.commentHint}
          value={comment}
          onChange={(event) => setComment(event.currentTarget.value)}
        />
        {template.versions.length > 0 && (
          <Switch
            label={TEXT.activateNow}
            checked={active}
            onChange={(event) => setActive(event.currentTarget.checked)}
          />
        )}
      </Stack>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button type="submit" loading={creation.isPending} disabled={tag.trim() === ''}>
          {TEXT.save}
        </Button>
      </Group>
    </form>
  )
}

/** "initial", then v2, v3 and so on: the first that is free. */
function nextTag(versions: readonly VersionSummary[]): string {
  if (versions.length === 0) return 'initial'
  const taken = new Set(versions.map(({ tag }) => tag))
  let number = versions.length + 1
  while (taken.has(`v${number}`)) number += 1
  return `v${number}`
}

/** A form that sends one message. Calls POST /v3/:domain/messages. */
import { Alert, Button, Group, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { sendFiles } from '../../api.ts'
import { formatBytes, localInputMs } from '../../base/format.ts'
import { Icon } from '../../look/icons.tsx'
import { systemQuery, valueOrThrow } from '../../queries.ts'
import { Copyable } from '../../shared/copyable.tsx'
import { Choice } from '../../shared/forms/choice.tsx'
import { same, TAG_OPTIONS } from '../../shared/forms/choices.ts'
import { Chooser } from '../../shared/forms/chooser.tsx'
import { DomainChoice, useChosenDomain, useFirstDomain } from '../../shared/forms/domain-choice.tsx'
import { LeaveGuard } from '../../shared/forms/leave-guard.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { MessageCheck } from '../../shared/mail/message-check.tsx'
import { useMessageHref } from '../../shared/mail/message-link.ts'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { readSample } from '../templates/sample.ts'
import { templatesQuery } from '../templates/templates-queries.ts'
import { BODIES, type Body, type ComposeSearch } from './compose-search.ts'
import { TEXT } from './text.ts'
import './compose.css'

const route = getRouteApi('/sending/compose')

interface Sent {
  id: string
}

export default function ComposePage() {
  const search = route.useSearch()
  const first = useFirstDomain()
  const domain = useChosenDomain(search.domain)
  const [sent, setSent] = useState<Sent>()
  return (
    <Page>
      <PageHeader title={TEXT.title} lead={TEXT.lead} />
      {first.error && domain === '' ? (
        <Failure title={TEXT.noDomains} error={first.error} retry={first.refetch} />
      ) : first.data === null ? (
        <Panel>
          <EmptyState icon="globe" title={TEXT.noDomain}>
            {TEXT.noDomainWhy}
          </EmptyState>
        </Panel>
      ) : (
        <>
          {sent && <SentNotice sent={sent} onAnother={() => setSent(undefined)} />}
          {/* Kept while the notice shows, so that another can differ in one word only. */}
          <div hidden={sent !== undefined}>
            <ComposeForm domain={domain} isSent={sent !== undefined} onSent={setSent} />
          </div>
        </>
      )}
    </Page>
  )
}

function SentNotice({ sent: { id }, onAnother }: { sent: Sent; onAnother: () => void }) {
  const messageHref = useMessageHref()
  return (
    <Panel>
      <Alert color="teal" title={TEXT.sent} role="status">
        <Text size="sm">{TEXT.sentWhy}</Text>
        <Copyable text={id} what={TEXT.messageId} />
      </Alert>
      <Group mt="md">
        <Button component="a" href={messageHref(id)}>
          {TEXT.open}
        </Button>
        <Button variant="default" onClick={onAnother}>
          {TEXT.another}
        </Button>
      </Group>
    </Panel>
  )
}

function ComposeForm(props: { domain: string; isSent: boolean; onSent: (sent: Sent) => void }) {
  const { domain, isSent, onSent } = props
  const { body = 'text', template = '', to: firstTo = '', subject: firstSubject = '' } = route.useSearch()
  const navigate = useNavigate({ from: '/sending/compose' })
  const empty = {
    from: '',
    to: firstTo,
    cc: '',
    subject: firstSubject,
    text: '',
    html: '',
    variables: '{}',
    tag: '',
    deliverAt: '',
  }
  const [fields, setFields] = useState(empty)
  const [files, setFiles] = useState<readonly File[]>([])
  const [isTest, setTest] = useState(false)
  const variables = readSample(fields.variables)
  const change = (changes: { [Name in keyof ComposeSearch]?: ComposeSearch[Name] | undefined }) =>
    void navigate({ replace: true, search: (old) => withSearch(old, changes) })
  const set = (name: keyof typeof fields) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget
    setFields((old) => ({ ...old, [name]: value }))
  }
  const given = { ...fields, body, template, files, isTest, from: fields.from || `postmaster@${domain}` }
  const sending = useSending({
    mutationFn: async () => {
      const form = messageForm(given)
      return valueOrThrow(await sendFiles(`/v3/${encodeURIComponent(domain)}/messages`, form))
    },
    onSuccess: onSent,
  })
  const hasBody = body === 'template' ? template !== '' && 'value' in variables : fields[body] !== ''
  const isWritten = files.length > 0 || JSON.stringify(fields) !== JSON.stringify(empty)
  const isComplete = domain !== '' && fields.to.trim() !== '' && hasBody
  return (
    <>
      <LeaveGuard isUnsaved={isWritten && !isSent} lost={TEXT.lost} />
      <form
        className="panel compose"
        aria-label={TEXT.title}
        onSubmit={(event) => {
          event.preventDefault()
          if (hasBody && !sending.isPending) sending.mutate()
        }}
      >
        <CaptureNotice />
        <AddressFields {...{ domain, fields, set }} onDomain={(chosen) => change({ domain: chosen })} />
        <TextInput
          label={TEXT.subject}
          value={fields.subject}
          onChange={set('subject')}
          {...(body === 'template' && { placeholder: TEXT.subjectOfTemplate })}
        />
        <div>
          <Choice<Body>
            label={TEXT.body}
            options={BODIES.map((each) => [each, TEXT.bodies[each]] as const)}
            value={body}
            onChange={(chosen) => change({ body: chosen })}
          />
        </div>
        <BodyFields
          {...{ domain, body, template, fields, set }}
          fault={'fault' in variables ? variables.fault : undefined}
          onTemplate={(chosen) => change({ template: chosen || undefined })}
        />
        <Attachments files={files} onChange={setFiles} />
        <div className="compose-pair">
          <Chooser
            label={TEXT.tag}
            showLabel
            options={TAG_OPTIONS}
            free
            none=""
            value={fields.tag}
            onChange={(tag) => setFields((old) => ({ ...old, tag }))}
          />
          <TextInput
            type="datetime-local"
            label={TEXT.deliverAt}
            description={TEXT.deliverAtHint}
            inputWrapperOrder={['label', 'input', 'description']}
            value={fields.deliverAt}
            onChange={set('deliverAt')}
          />
        </div>
        <Switch
          label={TEXT.testMode}
          checked={isTest}
          onChange={(event) => setTest(event.currentTarget.checked)}
        />
        {sending.error && (
          <Text size="sm" c="red" role="alert" className="breakable">
            {sending.error.message}
          </Text>
        )}
        <Group justify="flex-end">
          <Button
            type="submit"
            leftSection={<Icon name="send" size={16} />}
            loading={sending.isPending}
            disabled={!isComplete}
          >
            {TEXT.send}
          </Button>
        </Group>
      </form>
      <MessageCheck
        domain={domain}
        form={() => messageForm(given)}
        version={JSON.stringify([domain, given, files.map(({ name, size }) => [name, size])])}
        disabled={!isComplete}
      />
    </>
  )
}

/** Whether the mail leaves this machine. */
function CaptureNotice() {
  const { data: system } = useQuery(systemQuery)
  const isCapture = system?.mode === 'capture'
  return (
    <Alert
      color={isCapture ? 'petrol' : 'orange'}
      variant="light"
      role="note"
      icon={<Icon name={isCapture ? 'shield' : 'send'} />}
    >
      {isCapture ? TEXT.capture : TEXT.live}
    </Alert>
  )
}

/** What is written into the fields of the form. */
interface Fields {
  from: string
  to: string
  cc: string
  subject: string
  text: string
  html: string
  /** JSON. */
  variables: string
  tag: string
  deliverAt: string
}

interface FieldsProps {
  domain: string
  fields: Fields
  set: (name: keyof Fields) => (event: { currentTarget: { value: string } }) => void
}

function AddressFields({
  domain,
  fields,
  set,
  onDomain,
}: FieldsProps & { onDomain: (domain: string) => void }) {
  return (
    <div className="compose-pair">
      <DomainChoice label={TEXT.domain} toSend value={domain} onChange={onDomain} />
      <TextInput
        label={TEXT.from}
        placeholder={`postmaster@${domain}`}
        autoComplete="off"
        value={fields.from}
        onChange={set('from')}
      />
      <TextInput
        label={TEXT.to}
        description={TEXT.toHint}
        inputWrapperOrder={['label', 'input', 'description']}
        placeholder="bob@example.com"
        autoComplete="off"
        autoCapitalize="none"
        inputMode="email"
        value={fields.to}
        onChange={set('to')}
      />
      <TextInput
        label={TEXT.cc}
        autoComplete="off"
        inputMode="email"
        value={fields.cc}
        onChange={set('cc')}
      />
    </div>
  )
}

interface BodyFieldsProps extends FieldsProps {
  body: Body
  template: string
  /** What is wrong with the variables. */
  fault: string | undefined
  onTemplate: (name: string) => void
}

function BodyFields({ domain, body, template, fields, set, fault, onTemplate }: BodyFieldsProps) {
  return body === 'template' ? (
    <Stack gap="md">
      <TemplateChoice domain={domain} value={template} onChange={onTemplate} />
      <Textarea
        label={TEXT.variables}
        className="compose-code"
        autosize
        minRows={3}
        maxRows={12}
        spellCheck={false}
        value={fields.variables}
        error={fault}
        onChange={set('variables')}
      />
    </Stack>
  ) : (
    <Textarea
      key={body}
      aria-label={TEXT.bodies[body]}
      {...(body === 'html' && { className: 'compose-code', spellCheck: false })}
      autosize
      minRows={8}
      maxRows={24}
      value={fields[body]}
      onChange={set(body)}
    />
  )
}

interface GivenMessage extends Fields {
  body: Body
  template: string
  files: readonly File[]
  isTest: boolean
}

/** The fields of messages.md M1. */
function messageForm(given: GivenMessage): FormData {
  const form = new FormData()
  const add = (name: string, value: string) => {
    if (value.trim() !== '') form.append(name, value)
  }
  add('from', given.from)
  add('to', given.to)
  add('cc', given.cc)
  if (given.body === 'template') {
    add('subject', given.subject)
    add('template', given.template)
    add('t:variables', given.variables)
    form.append('t:text', 'yes')
  } else {
    form.append('subject', given.subject)
    form.append(given.body, given[given.body])
  }
  add('o:tag', given.tag)
  const deliverAt = localInputMs(given.deliverAt)
  if (Number.isFinite(deliverAt)) form.append('o:deliverytime', String(Math.round(deliverAt / 1000)))
  if (given.isTest) form.append('o:testmode', 'yes')
  for (const file of given.files) form.append('attachment', file)
  return form
}

function TemplateChoice(props: { domain: string; value: string; onChange: (name: string) => void }) {
  const { domain, value, onChange } = props
  const own = useQuery({ ...templatesQuery(domain), enabled: domain !== '' })
  const shared = useQuery(templatesQuery(''))
  const ownNames = own.data?.map(({ name }) => name) ?? []
  // A template of the domain hides one of the account with the same name, as it does at sending.
  const sharedNames = (shared.data ?? []).map(({ name }) => name).filter((name) => !ownNames.includes(name))
  const isEmpty = own.data?.length === 0 && shared.data?.length === 0
  return (
    <Chooser
      label={TEXT.template}
      showLabel
      {...(isEmpty && { description: TEXT.noTemplates })}
      options={[
        ...ownNames.map(same),
        ...sharedNames.map((name) => ({ ...same(name), note: TEXT.ofAccount })),
      ]}
      value={value}
      onChange={onChange}
    />
  )
}

function Attachments(props: { files: readonly File[]; onChange: (files: readonly File[]) => void }) {
  const { files, onChange } = props
  const picker = useRef<HTMLInputElement>(null)
  return (
    <div className="compose-files">
      <input
        ref={picker}
        type="file"
        multiple
        className="visually-hidden"
        tabIndex={-1}
        aria-label={TEXT.attachments}
        onChange={(event) => {
          onChange([...files, ...(event.currentTarget.files ?? [])])
          event.currentTarget.value = ''
        }}
      />
      <Button
        variant="default"
        size="sm"
        leftSection={<Icon name="plus" size={16} />}
        onClick={() => picker.current?.click()}
      >
        {TEXT.addFiles}
      </Button>
      {files.map((file, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same file may be there twice
        <span key={at} className="compose-file">
          <Icon name="file" size={15} />
          <span className="breakable">{file.name}</span>
          <span className="dimmed">{formatBytes(file.size)}</span>
          <button
            type="button"
            className="plain-button"
            aria-label={TEXT.removeFile(file.name)}
            onClick={() => onChange(files.filter((_, other) => other !== at))}
          >
            <Icon name="cross" size={14} />
          </button>
        </span>
      ))}
    </div>
  )
}

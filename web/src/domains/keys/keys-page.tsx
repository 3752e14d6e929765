/**
 * DKIM keys of a domain: selectors, rotation, authority, and its certificate. Calls /v1/dkim/keys, /v4/domains/:name/keys and
 * /v1/dkim_management.
 */
import { Badge, Button, Group, NativeSelect, Skeleton, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMay } from '../../session.ts'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { DomainFrame } from '../domain-frame.tsx'
import { kindOf } from '../domain-keys.tsx'
import { DOMAINS_KEY, domainKeysQuery } from '../domain-queries.ts'
import type { DomainDetails, DomainKey } from '../domains-api.ts'
import type { KeysSearch } from '../domains-search.ts'
import { updateDomain } from '../options/options-api.ts'
import { RecordField } from '../records/domain-records.tsx'
import { KEYS_TEXT as TEXT } from '../text.ts'
import {
  createKey,
  deleteKey,
  type KeyRotation,
  renameSelector,
  rotateNow,
  rotationQuery,
  setAuthority,
  setRotation,
  switchKey,
} from './keys-api.ts'

const route = getRouteApi('/domains/$name/keys')

/** The keys that sign a domain's mail: made, published, activated and replaced. */
export default function KeysPage() {
  const { name } = route.useParams()
  const mayChange = useMay({ area: 'domains', access: 'write' })
  const open = useOpen(name)
  return (
    <DomainFrame
      name={name}
      title={TEXT.title}
      lead={({ dkim_host }) => TEXT.lead(dkim_host)}
      actions={mayChange && <AddButton label={TEXT.add} onClick={() => open('add')} />}
    >
      {(domain) => <Keys domain={domain} mayChange={mayChange} />}
    </DomainFrame>
  )
}

/** Opens a window of the page; undefined closes it. */
function useOpen(name: string) {
  const navigate = useNavigate()
  return (form: KeysSearch['form']) =>
    void navigate({
      to: '/domains/$name/keys',
      params: { name },
      search: form === undefined ? {} : { form },
      replace: true,
    })
}

function Keys({ domain, mayChange }: { domain: DomainDetails; mayChange: boolean }) {
  const { name, dkim_host: authority, state } = domain
  const { form } = route.useSearch()
  const open = useOpen(name)
  const { data, error, refetch } = useQuery(domainKeysQuery(authority, state === 'unverified'))
  const showsRotation = mayChange && domain.use_automatic_sender_security
  const rotation = useQuery({ ...rotationQuery(name), enabled: showsRotation })
  const shown = { domain, onClose: () => open(undefined) }
  // Shown together: what comes later would push the rest down.
  if ((data === undefined && error === null) || (showsRotation && rotation.isPending))
    return <Skeleton height={320} role="status" aria-label={TEXT.title} />
  return (
    <>
      {data ? (
        <Panel title={TEXT.title} flush>
          {data.length === 0 && (
            <EmptyState icon="key" title={TEXT.none}>
              {TEXT.noneWhy}
            </EmptyState>
          )}
          {data.map((key) => (
            <KeyCard key={key.selector} authority={authority} domainKey={key} mayChange={mayChange} />
          ))}
        </Panel>
      ) : (
        error && <Failure title={TEXT.unreadable} error={error} retry={refetch} />
      )}
      {mayChange && (
        <>
          <Panel
            title={TEXT.rotateTitle}
            beside={
              <Button variant="default" size="xs" onClick={() => open('selector')}>
                {TEXT.rename}
              </Button>
            }
          >
            <ol className="key-steps">
              {TEXT.rotateSteps.map((step) => (
                <li key={step}>{step}</li>
              ))}
            </ol>
          </Panel>
          <Authority domain={domain} />
          <SenderSecurity domain={domain} rotation={rotation.data} onSchedule={() => open('rotation')} />
          {form === 'add' && <AddKey {...shown} />}
          {form === 'selector' && <RenameSelector {...shown} />}
          {form === 'rotation' && <Rotation {...shown} />}
        </>
      )}
    </>
  )
}

function KeyCard(props: { authority: string; domainKey: DomainKey; mayChange: boolean }) {
  const { authority, domainKey, mayChange } = props
  const { selector, dns_record: record } = domainKey
  return (
    <article className="key-card" aria-label={selector}>
      <header>
        <h3>{selector}</h3>
        <span className="dimmed">{kindOf(record)}</span>
        <span className="dimmed">{record.valid === 'VALID' ? TEXT.found : TEXT.notFound}</span>
        <span className="grow" />
        <Badge variant="light" tt="none" fw={550} color={record.is_active ? 'teal' : 'gray'}>
          {record.is_active ? TEXT.signs : TEXT.doesNotSign}
        </Badge>
      </header>
      <dl className="record-fields">
        <RecordField name={TEXT.recordName} text={record.name} what={TEXT.copyName(selector)} />
        <RecordField name={record.record_type} text={record.value} what={TEXT.copyValue(selector)} />
      </dl>
      {mayChange && record.record_type !== 'CNAME' && (
        <Group gap="xs">
          <SwitchKey authority={authority} selector={selector} signs={record.is_active} />
          <ActionButton
            label={TEXT.remove}
            name={TEXT.removeOf(selector)}
            run={() => deleteKey(authority, selector)}
            done={TEXT.removed(selector)}
            changes={DOMAINS_KEY}
            ask={{ title: TEXT.removeTitle, consequence: TEXT.removeWhy, mustType: selector }}
          />
        </Group>
      )}
    </article>
  )
}

function SwitchKey(props: { authority: string; selector: string; signs: boolean }) {
  const { authority, selector, signs } = props
  const activate = () => switchKey(authority, selector, 'activate')
  const deactivate = () => switchKey(authority, selector, 'deactivate')
  return signs ? (
    <ActionButton
      // A key per state, so that a refusal goes away with it.
      key="deactivate"
      label={TEXT.deactivate}
      name={TEXT.deactivateOf(selector)}
      run={deactivate}
      done={TEXT.deactivated(selector)}
      undo={activate}
      undone={TEXT.activated(selector)}
      changes={DOMAINS_KEY}
    />
  ) : (
    <ActionButton
      key="activate"
      label={TEXT.activate}
      name={TEXT.activateOf(selector)}
      run={activate}
      done={TEXT.activated(selector)}
      undo={deactivate}
      undone={TEXT.deactivated(selector)}
      changes={DOMAINS_KEY}
    />
  )
}

/** Whose keys sign. A subdomain may leave that to its parent. */
function Authority({ domain: { name, dkim_host: authority } }: { domain: DomainDetails }) {
  const isOwn = name === authority
  const mayHaveParent = name.split('.').length > 2 // a domain has two labels at least
  const sign = (self: boolean) => () => setAuthority(name, self)
  return (
    <Panel title={TEXT.authority}>
      <Text size="sm" mb="sm" className="breakable">
        {TEXT.authorityWhy(name, authority)}
      </Text>
      {(!isOwn || mayHaveParent) && (
        <ActionButton
          label={isOwn ? TEXT.parentKeys : TEXT.ownKeys}
          run={sign(!isOwn)}
          done={({ message }) => message}
          undo={sign(isOwn)}
          undone={TEXT.authorityRestored}
          changes={DOMAINS_KEY}
        />
      )}
    </Panel>
  )
}

function SenderSecurity(props: {
  domain: DomainDetails
  rotation: KeyRotation | undefined
  onSchedule: () => void
}) {
  const { domain, rotation, onSchedule } = props
  const { name, use_automatic_sender_security: isOn } = domain
  // Not known: the service decides.
  const mayRotate = !rotation || (rotation.state === 'enabled' && rotation.in_progress === null)
  return (
    <Panel
      title={TEXT.automatic}
      beside={
        <Badge variant="light" tt="none" fw={550} color={isOn ? 'teal' : 'gray'}>
          {isOn ? TEXT.isOn : TEXT.isOff}
        </Badge>
      }
    >
      <Text size="sm" mb="sm">
        {TEXT.automaticWhy}
      </Text>
      {isOn && rotation && <RotationState rotation={rotation} />}
      <Group gap="xs">
        {isOn && (
          <>
            <ActionButton
              label={TEXT.rotateNow}
              run={() => rotateNow(name)}
              done={TEXT.rotateNowDone}
              disabled={!mayRotate}
              changes={DOMAINS_KEY}
            />
            <Button variant="default" size="xs" onClick={onSchedule}>
              {TEXT.schedule}
            </Button>
          </>
        )}
        <ActionButton
          label={isOn ? TEXT.automaticOff : TEXT.automaticOn}
          name={isOn ? TEXT.automaticOffLong : TEXT.automaticOnLong}
          run={() => updateDomain(name, { use_automatic_sender_security: String(!isOn) })}
          done={isOn ? TEXT.automaticOffDone : TEXT.automaticOnDone}
          changes={DOMAINS_KEY}
          ask={{ title: TEXT.automaticAsk, consequence: TEXT.automaticConsequence }}
        />
      </Group>
    </Panel>
  )
}

/** What the rotation does now, and when it goes on. */
function RotationState({ rotation }: { rotation: KeyRotation }) {
  const { state, active_selector: active, next_at, in_progress } = rotation
  if (in_progress === null)
    return (
      <Text size="sm" mb="sm">
        {state === 'wait_verify'
          ? TEXT.rotationWaits
          : next_at === null
            ? TEXT.noRotation
            : TEXT.nextRotation}{' '}
        {next_at !== null && <Time at={next_at} />}
      </Text>
    )
  const { phase, selector, until } = in_progress
  return (
    <Text size="sm" mb="sm" role="status">
      <Badge variant="light" tt="none" fw={550} color="petrol">
        {TEXT.rotating}
      </Badge>{' '}
      {phase === 'publishing'
        ? TEXT.publishing(selector, active ?? '')
        : TEXT.retiring(selector, active ?? '')}{' '}
      <Time at={until} />.
    </Text>
  )
}

interface FormProps {
  domain: DomainDetails
  onClose: () => void
}

function AddKey({ domain: { dkim_host: authority }, onClose }: FormProps) {
  const form = useForm({
    initial: { selector: '', kind: TEXT.kinds[0][0] as string },
    send: ({ selector, kind }) => createKey(authority, selector.trim(), kind),
    changes: DOMAINS_KEY,
    onDone({ selector }) {
      notify({ text: TEXT.created(selector) })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.add}
      submit={TEXT.create}
      isComplete={form.values.selector.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.selector}
        description={TEXT.selectorHelp}
        {...EXACT}
        {...form.field('selector')}
        data-autofocus
      />
      <NativeSelect
        label={TEXT.kind}
        data={TEXT.kinds.map(([value, label]) => ({ value, label }))}
        {...form.field('kind')}
      />
    </FormWindow>
  )
}

function RenameSelector({ domain: { name }, onClose }: FormProps) {
  const form = useForm({
    initial: { selector: '' },
    send: ({ selector }) => renameSelector(name, selector.trim()),
    changes: DOMAINS_KEY,
    onDone() {
      notify({ text: TEXT.renamed })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.rename}
      submit={TEXT.save}
      isComplete={form.values.selector.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.selector}
        description={TEXT.renameWhy}
        {...EXACT}
        {...form.field('selector')}
        data-autofocus
      />
    </FormWindow>
  )
}

function Rotation({ domain: { name }, onClose }: FormProps) {
  const form = useForm({
    initial: { interval: '120d' },
    send: ({ interval }) => setRotation(name, interval),
    changes: DOMAINS_KEY,
    onDone() {
      notify({ text: TEXT.scheduleSaved })
      onClose()
    },
  })
  return (
    <FormWindow title={TEXT.schedule} submit={TEXT.save} isComplete {...form.window} onClose={onClose}>
      <NativeSelect
        label={TEXT.scheduleEvery}
        data={TEXT.scheduleChoices.map(([value, label]) => ({ value, label }))}
        {...form.field('interval')}
        data-autofocus
      />
    </FormWindow>
  )
}

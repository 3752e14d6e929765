/** One subaccount: features, limits, state. Calls /v5/accounts/subaccounts/:id. */
import { Alert, Button, Group, Skeleton, Switch, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { actFor } from '../../acting.ts'
import { useMay } from '../../session.ts'
import { Copyable } from '../../shared/copyable.tsx'
import { ActionButton, Refusal } from '../../shared/forms/action-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { useSending } from '../../shared/forms/use-sending.ts'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { withSearch } from '../../shared/page/search.ts'
import { Failure } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { MonthlyLimit } from '../limits/monthly-limit.tsx'
import { RateLimits } from '../limits/rate-limits.tsx'
import { StandingPanel } from './standing-panel.tsx'
import {
  closeSubaccount,
  disableSubaccount,
  enableSubaccount,
  FEATURES,
  type Feature,
  SUBACCOUNTS_KEY,
  type Subaccount,
  setFeature,
  subaccountQuery,
} from './subaccounts-api.ts'
import { StatusBadge } from './subaccounts-page.tsx'
import { TEXT } from './text.ts'
import '../settings.css'

const route = getRouteApi('/settings/subaccounts/$id')
const back = { to: '/settings/subaccounts', label: TEXT.title }

export default function SubaccountPage() {
  const { id } = route.useParams()
  const found = useQuery(subaccountQuery(id))
  return (
    <Page>
      {found.data ? (
        <Found subaccount={found.data} />
      ) : (
        <>
          <PageHeader title={TEXT.title} back={back} />
          {found.error ? (
            <Failure title={TEXT.gone} error={found.error} retry={found.refetch} />
          ) : (
            <Skeleton height={520} />
          )}
        </>
      )}
    </Page>
  )
}

function Found({ subaccount }: { subaccount: Subaccount }) {
  const { id, name, status, created_at, disabled } = subaccount
  const search = route.useSearch()
  const navigate = useNavigate({ from: '/settings/subaccounts/$id' })
  const mayChange = useMay({ area: 'subaccounts', access: 'write', only: 'parent' }) && status !== 'closed'
  const mayReadLimits = useMay({ area: 'message-limits' })
  const mayRate = useMay({ area: 'account', access: 'write', only: 'first' })
  const setDisabling = (disabling: boolean) =>
    void navigate({
      replace: true,
      search: (old) => withSearch(old, { disable: disabling ? 'yes' : undefined }),
    })
  return (
    <>
      <PageHeader
        title={name}
        beside={<StatusBadge status={status} />}
        back={back}
        lead={
          <>
            <Copyable text={id} what="the id" /> · {TEXT.since.toLowerCase()}{' '}
            <Time at={created_at} as="date" />
          </>
        }
        actions={status !== 'closed' && <Button onClick={() => actFor(id)}>{TEXT.act}</Button>}
      />
      {status === 'closed' && <Alert color="gray">{TEXT.closedWhy}</Alert>}
      {disabled && (disabled.reason !== '' || disabled.note !== '') && (
        <Alert color="orange" title={TEXT.disabledFor} className="breakable">
          {[disabled.reason, disabled.note].filter(Boolean).join(': ')}
        </Alert>
      )}
      {status !== 'closed' && mayRate && <StandingPanel accountId={id} />}
      {status !== 'closed' && mayReadLimits && <MonthlyLimit subaccountId={id} />}
      <Panel title={TEXT.features}>
        <Text size="sm" c="dimmed" mb="sm">
          {TEXT.featuresWhy}
        </Text>
        <div className="settings-switches">
          {FEATURES.map((feature) => (
            <FeatureSwitch key={feature} subaccount={subaccount} feature={feature} mayChange={mayChange} />
          ))}
        </div>
      </Panel>
      {status !== 'closed' && mayRate && <RateLimits accountId={id} />}
      {mayChange && (
        <Group>
          {status === 'open' ? (
            <Button variant="default" size="xs" onClick={() => setDisabling(true)}>
              {TEXT.disable}
            </Button>
          ) : (
            <ActionButton
              label={TEXT.enable}
              run={() => enableSubaccount(id)}
              done={TEXT.enabledNow(name)}
              changes={SUBACCOUNTS_KEY}
            />
          )}
          <ActionButton
            label={TEXT.delete}
            color="red"
            variant="light"
            run={() => closeSubaccount(id)}
            done={TEXT.deleted(name)}
            changes={SUBACCOUNTS_KEY}
            onDone={() => void navigate({ to: '/settings/subaccounts' })}
            ask={{ title: TEXT.deleteTitle, consequence: TEXT.deleteWhy, mustType: name }}
          />
        </Group>
      )}
      {mayChange && search.disable === 'yes' && status === 'open' && (
        <DisableForm subaccount={subaccount} onClose={() => setDisabling(false)} />
      )}
    </>
  )
}

function FeatureSwitch(props: { subaccount: Subaccount; feature: Feature; mayChange: boolean }) {
  const { subaccount, feature, mayChange } = props
  const queries = useQueryClient()
  const isOn = subaccount.features[feature]?.enabled === true
  const change = useSending({
    mutationFn: (enabled: boolean) => setFeature(subaccount.id, feature, enabled),
    async onSuccess(_, enabled) {
      await queries.invalidateQueries({ queryKey: [SUBACCOUNTS_KEY] })
      notify({
        text: (enabled ? TEXT.on : TEXT.off)(TEXT.featureNames[feature]),
        undo: () => change.mutate(!enabled),
      })
    },
  })
  return (
    <div>
      <Switch
        label={TEXT.featureNames[feature]}
        description={TEXT.featureMeanings[feature]}
        checked={change.isPending ? change.variables : isOn}
        disabled={!mayChange || change.isPending}
        onChange={(event) => change.mutate(event.currentTarget.checked)}
      />
      {change.error && <Refusal error={change.error} />}
    </div>
  )
}

function DisableForm({ subaccount: { id, name }, onClose }: { subaccount: Subaccount; onClose: () => void }) {
  const form = useForm({
    initial: { reason: '', note: '' },
    send: (why) => disableSubaccount(id, why),
    changes: SUBACCOUNTS_KEY,
    onDone() {
      notify({ text: TEXT.disabledNow(name) })
      onClose()
    },
  })
  return (
    <FormWindow title={TEXT.disableTitle} submit={TEXT.disable} isComplete {...form.window} onClose={onClose}>
      <Text size="sm">{TEXT.disableWhy}</Text>
      <TextInput
        label={TEXT.reason}
        autoComplete="off"
        maxLength={1000}
        {...form.field('reason')}
        data-autofocus
      />
      <TextInput label={TEXT.note} autoComplete="off" maxLength={1000} {...form.field('note')} />
    </FormWindow>
  )
}

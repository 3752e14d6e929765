import { Checkbox, Group, NativeSelect, TextInput } from '@mantine/core'
import { useSession } from '../../session.ts'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import {
  ALERTS_KEY,
  type Alert,
  CHANNELS,
  type Channel,
  COMPARATORS,
  DIMENSIONS,
  METRICS,
  saveAlert,
} from './alerts-api.ts'
import { TEXT } from './text.ts'

/** Percent of people's making as the share that the API has; '' if it is no number. */
const shareOf = (percents: string) => {
  const value = Number(percents.trim().replace(',', '.'))
  return percents.trim() !== '' && Number.isFinite(value) ? String(Number((value / 100).toFixed(8))) : ''
}

/** Without `alert`: creates one. What the form does not show, such as filters, stays. */
export function AlertForm({ alert, onClose }: { alert?: Alert; onClose: () => void }) {
  const { account } = useSession()
  const form = useForm({
    initial: {
      name: alert?.name ?? '',
      description: alert?.description ?? '',
      metric: alert?.metric ?? 'hard_bounce_rate',
      comparator: alert?.comparator ?? '>',
      percents: alert === undefined ? '5' : String(Number((Number(alert.limit) * 100).toFixed(6))),
      dimension: alert?.dimension ?? 'domain',
      period: alert?.period ?? '1d',
      alert_channels: alert?.alert_channels ?? (['email'] as Channel[]),
    },
    send({ percents, name, ...values }) {
      const kept = alert && {
        filters: alert.filters,
        ...(alert.account_group !== undefined && { account_group: alert.account_group }),
      }
      return saveAlert(alert?.name, { ...kept, ...values, name: name.trim(), limit: shareOf(percents) })
    },
    changes: ALERTS_KEY,
    onDone() {
      notify({ text: alert ? TEXT.saved : TEXT.created })
      onClose()
    },
  })
  const { name, percents, period, alert_channels } = form.values
  // Only a parent has subaccounts to compare.
  const dimensions = DIMENSIONS.filter((each) => each !== 'subaccount' || account.parent_id === null)
  const periods = [
    ...TEXT.periods.map(([value, label]) => ({ value: value as string, label: label as string })),
    ...(TEXT.periods.some(([value]) => value === period) ? [] : [{ value: period, label: period }]),
  ]
  return (
    <FormWindow
      title={alert ? TEXT.edit : TEXT.add}
      submit={alert ? TEXT.save : TEXT.create}
      isComplete={name.trim() !== '' && shareOf(percents) !== '' && alert_channels.length > 0}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.name}
        placeholder={TEXT.namePlaceholder}
        autoComplete="off"
        maxLength={128}
        {...form.field('name')}
        data-autofocus
      />
      <NativeSelect
        label={TEXT.metric}
        data={METRICS.map((value) => ({ value, label: TEXT.metrics[value] }))}
        {...form.field('metric')}
      />
      <Group grow align="flex-start">
        <NativeSelect
          label={TEXT.comparator}
          data={COMPARATORS.map((value) => ({ value, label: TEXT.comparators[value] }))}
          {...form.field('comparator')}
        />
        <TextInput label={TEXT.limit} inputMode="decimal" autoComplete="off" {...form.field('percents')} />
      </Group>
      <Group grow align="flex-start">
        <NativeSelect label={TEXT.period} data={periods} {...form.field('period')} />
        <NativeSelect
          label={TEXT.dimension}
          data={dimensions.map((value) => ({ value, label: TEXT.dimensions[value] }))}
          {...form.field('dimension')}
        />
      </Group>
      <Checkbox.Group
        label={TEXT.channels}
        value={alert_channels}
        onChange={(chosen) => form.set({ alert_channels: CHANNELS.filter((each) => chosen.includes(each)) })}
      >
        <Group mt={6}>
          {CHANNELS.map((each) => (
            <Checkbox key={each} value={each} label={TEXT.channelNames[each]} />
          ))}
        </Group>
      </Checkbox.Group>
      <TextInput
        label={TEXT.description}
        autoComplete="off"
        maxLength={1000}
        {...form.field('description')}
      />
    </FormWindow>
  )
}

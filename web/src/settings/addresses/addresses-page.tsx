/** Addresses that may call the API, and open sessions. Calls /v2/ip_whitelist and /sendwright/v1/sessions. */
import { Alert, Badge, Button, Checkbox, Group, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMay } from '../../session.ts'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, type Column } from '../../shared/page/data-table.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { TEXT as SHARED } from '../text.ts'
import {
  ADDRESSES_KEY,
  addAddress,
  addressesQuery,
  type CallerAddress,
  describeAddress,
  ownAddressQuery,
  removeAddress,
} from './addresses-api.ts'
import { isInNetwork } from './in-network.ts'
import { TEXT } from './text.ts'
import '../settings.css'

const route = getRouteApi('/settings/addresses')

export default function AddressesPage() {
  const { add, edit } = route.useSearch()
  const navigate = useNavigate({ from: '/settings/addresses' })
  const mayChange = useMay({ area: 'keys', access: 'write' })
  const list = useQuery(addressesQuery)
  const own = useQuery(ownAddressQuery).data ?? null
  const rows = list.data
  const edited = rows?.find(({ ip_address }) => ip_address === edit)
  const close = () => void navigate({ replace: true, search: {} })
  const button = mayChange && (
    <AddButton label={TEXT.add} onClick={() => void navigate({ replace: true, search: { add: 'yes' } })} />
  )
  const columns: Column<CallerAddress>[] = [
    {
      header: TEXT.address,
      cell: ({ ip_address }) => (
        <span>
          <strong className="breakable">{ip_address}</strong>{' '}
          {own !== null && isInNetwork(own, ip_address) && (
            <Badge variant="light" tt="none" color="teal">
              {TEXT.here}
            </Badge>
          )}
        </span>
      ),
    },
    {
      header: TEXT.description,
      cell: ({ description }) => <span className="breakable">{description || '–'}</span>,
    },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: (entry: CallerAddress) => (
              <Group gap="xs" justify="flex-end">
                <Button
                  variant="default"
                  size="xs"
                  aria-label={TEXT.changeOf(entry.ip_address)}
                  onClick={() => void navigate({ replace: true, search: { edit: entry.ip_address } })}
                >
                  {TEXT.change}
                </Button>
                <RemoveAddress entry={entry} all={rows ?? []} own={own} />
              </Group>
            ),
          },
        ]
      : []),
  ]
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/settings', label: SHARED.title }}
      actions={button}
      list={list}
      rows={rows}
      rowKey={({ ip_address }) => ip_address}
      columns={columns}
      empty={
        <EmptyState icon="shield" title={TEXT.none} action={button}>
          {TEXT.noneWhy}
        </EmptyState>
      }
    >
      {mayChange && rows && add === 'yes' && <AddressForm all={rows} own={own} onClose={close} />}
      {mayChange && rows && edited && (
        <AddressForm key={edited.ip_address} entry={edited} all={rows} own={own} onClose={close} />
      )}
    </ListPage>
  )
}

/** Whether calls from `own` would be refused with these entries. */
const shutsOut = (own: string | null, entries: readonly CallerAddress[]) =>
  own !== null && entries.length > 0 && !entries.some(({ ip_address }) => isInNetwork(own, ip_address))

function RemoveAddress(props: { entry: CallerAddress; all: readonly CallerAddress[]; own: string | null }) {
  const { entry, all, own } = props
  const { ip_address } = entry
  const left = all.filter((each) => each !== entry)
  const consequence =
    left.length === 0
      ? TEXT.lastWhy
      : shutsOut(own, left) && own !== null
        ? TEXT.outWarning(own)
        : TEXT.outUnknown
  return (
    <ActionButton
      label={TEXT.remove}
      name={TEXT.removeOf(ip_address)}
      run={() => removeAddress(entry)}
      done={TEXT.removed(ip_address)}
      undo={() => addAddress(entry)}
      undone={TEXT.restored(ip_address)}
      changes={ADDRESSES_KEY}
      ask={{ title: TEXT.removeTitle, consequence }}
    />
  )
}

/** Without `entry`: adds one. The address of an existing one stays. */
function AddressForm(props: {
  entry?: CallerAddress
  all: readonly CallerAddress[]
  own: string | null
  onClose: () => void
}) {
  const { entry, all, own, onClose } = props
  const form = useForm({
    initial: { ip_address: '', description: '', ...entry, understood: false },
    send: ({ ip_address, description }) =>
      (entry ? describeAddress : addAddress)({ ip_address, description }),
    changes: ADDRESSES_KEY,
    onDone(_, { ip_address }) {
      notify({ text: entry ? TEXT.saved : TEXT.added(ip_address.trim()) })
      onClose()
    },
  })
  const { ip_address, description, understood } = form.values
  const isGiven = ip_address.trim() !== ''
  const isOut = isGiven && shutsOut(own, [...all, { ip_address, description }])
  const warning =
    entry || !isGiven
      ? null
      : isOut && own !== null
        ? TEXT.outWarning(own)
        : all.length === 0
          ? TEXT.firstWarning
          : null
  return (
    <FormWindow
      title={entry ? entry.ip_address : TEXT.add}
      submit={entry ? TEXT.save : TEXT.allow}
      isComplete={isGiven && (warning === null || understood)}
      {...form.window}
      onClose={onClose}
    >
      {!entry && (
        <TextInput
          label={TEXT.address}
          placeholder={TEXT.addressPlaceholder}
          {...EXACT}
          {...form.field('ip_address')}
          data-autofocus
        />
      )}
      <TextInput
        label={TEXT.description}
        placeholder={TEXT.descriptionPlaceholder}
        autoComplete="off"
        maxLength={255}
        {...form.field('description')}
        {...(entry && { 'data-autofocus': true })}
      />
      {warning !== null && (
        <>
          <Alert color="orange" role="status">
            {warning}
          </Alert>
          <Checkbox
            label={TEXT.understood}
            checked={understood}
            onChange={(event) => form.set({ understood: event.currentTarget.checked })}
          />
        </>
      )}
    </FormWindow>
  )
}

/**
 * Writes the records of a domain at its DNS provider: what would be written is shown first, and only that is written. Then the
 * records are looked up. Calls POST /sendwright/v1/domains/:name/dns-changes, and its /undo.
 */
import { Button, Group, Loader, Modal, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { useSending } from '../../shared/forms/use-sending.ts'
import {
  CHANGES_KEY,
  DOMAINS_KEY,
  dnsChangesQuery,
  dnsPlanQuery,
  dnsProvidersQuery,
} from '../domain-queries.ts'
import { applyDns, type DnsChange, undoDns, verifyDomain } from '../domains-api.ts'
import { WRITING_TEXT as TEXT } from '../text.ts'
import { recordTitle } from './records.ts'

/** The buttons; none without a provider, or without the right. */
export function DnsWriting({ name }: { name: string }) {
  const [open, setOpen] = useState<'apply' | 'undo' | null>(null)
  const mayWrite = useMay({ area: 'domains', access: 'write' })
  const providers = useQuery({ ...dnsProvidersQuery, enabled: mayWrite })
  const hasProvider = mayWrite && (providers.data?.length ?? 0) > 0
  const changes = useQuery({ ...dnsChangesQuery(name), enabled: hasProvider })
  if (!hasProvider) return null
  const last = changes.data?.find(({ undoes, state }) => undoes === null && state !== 'undone')
  return (
    <>
      <Button variant="default" onClick={() => setOpen('apply')}>
        {TEXT.write}
      </Button>
      {last && (
        <Button variant="subtle" onClick={() => setOpen('undo')}>
          {TEXT.undo}
        </Button>
      )}
      <Modal
        opened={open !== null}
        onClose={() => setOpen(null)}
        title={<strong>{open === 'undo' ? TEXT.undoTitle : TEXT.title(name)}</strong>}
        size="xl"
        centered
      >
        {open !== null && (
          <Writing
            key={open}
            name={name}
            undoes={open === 'undo' ? (last?.id ?? null) : null}
            onClose={() => setOpen(null)}
          />
        )}
      </Modal>
    </>
  )
}

/** `undoes`: the change to take back; null: the records are written. */
function Writing({ name, undoes, onClose }: { name: string; undoes: string | null; onClose: () => void }) {
  const queries = useQueryClient()
  const plan = useQuery(dnsPlanQuery(name, undoes))
  const write = useSending({
    mutationFn: async (digest: string) =>
      valueOrThrow(await (undoes === null ? applyDns(name, { digest }) : undoDns(name, undoes, {}))),
    async onSuccess() {
      // The look may be refused as one too many: the records are written all the same.
      await verifyDomain(name)
      await queries.invalidateQueries({ queryKey: [DOMAINS_KEY] })
      await queries.invalidateQueries({ queryKey: [CHANGES_KEY] })
    },
  })
  const shown = write.data ?? plan.data
  const digest = plan.data?.state === 'planned' ? plan.data.digest : null
  const failure = (write.error ?? plan.error)?.message ?? shown?.error
  return (
    <>
      {shown ? (
        <>
          <Text size="sm">{TEXT.states(shown)}</Text>
          <Entries change={shown} />
        </>
      ) : (
        plan.error === null && <Loader aria-label={TEXT.loading} />
      )}
      <div role="alert">
        {failure && (
          <Text size="sm" c="red" mt="sm" className="breakable">
            {failure}
          </Text>
        )}
      </div>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {write.data ? TEXT.close : TEXT.cancel}
        </Button>
        {!write.data && digest !== null && (
          <Button loading={write.isPending} onClick={() => write.mutate(digest)} data-autofocus>
            {undoes === null ? TEXT.apply : TEXT.undoNow}
          </Button>
        )}
      </Group>
    </>
  )
}

const SIGNS = { add: '+', change: '~', remove: '−', unchanged: '=', left: '!' } as const

function Entries({ change }: { change: DnsChange }) {
  return (
    <ul className="dns-diff" aria-label={TEXT.list}>
      {change.entries.map((entry) => {
        const { action, name, type, purpose, reason, written } = entry
        return (
          <li className="dns-line" key={`${purpose} ${type} ${name}`} data-action={action}>
            <span className="dns-sign" title={TEXT.actions[action]}>
              {SIGNS[action]}
            </span>
            <div className="breakable">
              <strong>{recordTitle({ purpose, name })}</strong> {type} {name}{' '}
              {action === 'left' && <span className="dimmed">{TEXT.left(reason)}</span>}
              {change.id !== null && written === false && <span className="dimmed">{TEXT.notWritten}</span>}
              {entry.remove.map((value) => (
                <del className="dns-value dns-gone" key={value}>
                  {value}
                </del>
              ))}
              {entry.add.map((value) => (
                <ins className="dns-value dns-come" key={value}>
                  {value}
                </ins>
              ))}
            </div>
          </li>
        )
      })}
    </ul>
  )
}

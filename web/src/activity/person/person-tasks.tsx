/** The buttons of a person's page: an archive of all that is stored, and erasure, which counts first. */
import { Button, Group, Loader, Modal, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Icon } from '../../look/icons.tsx'
import { downloadLink } from '../../shared/download.ts'
import { EXACT } from '../../shared/forms/use-form.ts'
import { useSending } from '../../shared/forms/use-sending.ts'
import { Failure } from '../../shared/page/states.tsx'
import {
  archivePath,
  PERSON_KEY,
  type PersonTask,
  reportPath,
  startTask,
  type TaskKind,
  taskQuery,
} from './person-api.ts'
import { countWords, TEXT } from './text.ts'

export function PersonButtons({ address }: { address: string }) {
  const [open, setOpen] = useState<TaskKind>()
  const close = () => setOpen(undefined)
  return (
    <>
      <Button
        variant="default"
        leftSection={<Icon name="download" size={16} />}
        onClick={() => setOpen('export')}
      >
        {TEXT.export}
      </Button>
      <Button
        variant="default"
        color="red"
        leftSection={<Icon name="trash" size={16} />}
        onClick={() => setOpen('erase')}
      >
        {TEXT.erase}
      </Button>
      {open === 'export' && <ExportWindow address={address} onClose={close} />}
      {open === 'erase' && <EraseWindow address={address} onClose={close} />}
    </>
  )
}

/** A task that starts at once where `isAtOnce`, and is watched until it is over. */
function useTask(kind: TaskKind, address: string, isDry: boolean, isAtOnce: boolean) {
  const start = useSending({ mutationFn: () => startTask(kind, address, isDry) })
  const task = useQuery(taskQuery(start.data?.id))
  const { mutate } = start
  const begun = useRef(false)
  useEffect(() => {
    // Once: a component may be mounted twice.
    if (isAtOnce && !begun.current) {
      begun.current = true
      mutate()
    }
  }, [isAtOnce, mutate])
  const { data } = task
  const failure = start.error ?? task.error ?? (data?.state === 'failed' ? new Error(data.error) : null)
  return { start: mutate, isBegun: !start.isIdle, failure, done: data?.state === 'done' ? data : undefined }
}

function ExportWindow({ address, onClose }: { address: string; onClose: () => void }) {
  const { start, failure, done } = useTask('export', address, false, true)
  return (
    <TaskWindow title={TEXT.exportTitle} onClose={onClose}>
      {failure ? (
        <Failure title={TEXT.failed} error={failure} retry={start} />
      ) : done ? (
        <>
          <Text size="sm">{TEXT.exported}</Text>
          <Counts task={done} />
        </>
      ) : (
        <Working words={TEXT.exporting} />
      )}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {TEXT.close}
        </Button>
        {done && (
          <Button component="a" {...downloadLink(archivePath(done.id), `person-${done.id}.tar.gz`)}>
            {TEXT.download}
          </Button>
        )}
      </Group>
    </TaskWindow>
  )
}

/** Counts, asks for the address, erases, and shows what was done. */
function EraseWindow({ address, onClose }: { address: string; onClose: () => void }) {
  const queries = useQueryClient()
  const dry = useTask('erase', address, true, true)
  const real = useTask('erase', address, false, false)
  const { done } = real
  useEffect(() => {
    if (done) void queries.invalidateQueries({ queryKey: [PERSON_KEY, address] })
  }, [done, queries, address])
  const failure = real.isBegun ? real.failure : dry.failure
  return (
    <TaskWindow title={TEXT.eraseTitle} onClose={onClose}>
      {failure ? (
        <Failure title={TEXT.failed} error={failure} retry={real.isBegun ? real.start : dry.start} />
      ) : done ? (
        <>
          <Text size="sm">{TEXT.erased}</Text>
          <Counts task={done} />
        </>
      ) : real.isBegun ? (
        <Working words={TEXT.erasing} />
      ) : dry.done === undefined ? (
        <Working words={TEXT.counting} />
      ) : isEmpty(dry.done) ? (
        <Text size="sm">{TEXT.nothing}</Text>
      ) : (
        <EraseForm address={address} counted={dry.done} onErase={real.start} onClose={onClose} />
      )}
      {(failure || real.isBegun || dry.done === undefined || isEmpty(dry.done)) && (
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {TEXT.close}
          </Button>
          {done && (
            <Button component="a" {...downloadLink(reportPath(done.id), `report-${done.id}.json`)}>
              {TEXT.report}
            </Button>
          )}
        </Group>
      )}
    </TaskWindow>
  )
}

const isEmpty = ({ counts }: PersonTask) => Object.values(counts).every(({ found }) => found === 0)

function EraseForm(props: {
  address: string
  counted: PersonTask
  onErase: () => void
  onClose: () => void
}) {
  const { address, counted, onErase, onClose } = props
  const [typed, setTyped] = useState('')
  const isMeant = typed.trim().toLowerCase() === address.toLowerCase()
  return (
    <form
      className="form-window"
      onSubmit={(event) => {
        event.preventDefault()
        if (isMeant) onErase()
      }}
    >
      <Text size="sm">{TEXT.counted}</Text>
      <Counts task={counted} />
      <Text size="sm">{TEXT.cannotUndo}</Text>
      <TextInput
        label={
          <>
            Type <strong className="breakable">{address}</strong> {TEXT.mustType}
          </>
        }
        {...EXACT}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        data-autofocus
      />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button type="submit" color="red" disabled={!isMeant}>
          {TEXT.erase}
        </Button>
      </Group>
    </form>
  )
}

function Counts({ task }: { task: PersonTask }) {
  const found = Object.entries(task.counts).filter(([, count]) => count.found > 0)
  if (found.length === 0) return <Text size="sm">{TEXT.nothing}</Text>
  return (
    <ul className="person-counts">
      {found.map(([store, count]) => (
        <li key={store}>{countWords(store, count)}</li>
      ))}
    </ul>
  )
}

const Working = ({ words }: { words: string }) => (
  <Group gap="sm" wrap="nowrap" role="status">
    <Loader size="sm" aria-label={TEXT.working} />
    <Text size="sm">{words}</Text>
  </Group>
)

function TaskWindow(props: { title: string; onClose: () => void; children: ReactNode }) {
  const { title, onClose, children } = props
  return (
    <Modal opened onClose={onClose} title={<strong>{title}</strong>} centered>
      <div className="form-window">{children}</div>
    </Modal>
  )
}

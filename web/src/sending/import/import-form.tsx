import { Alert, Button, Group, Stack, Text, Textarea } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import type { Answer } from '../../api.ts'
import { countOf, formatBytes } from '../../base/format.ts'
import { Icon } from '../../look/icons.tsx'
import { ProgressLine } from '../../shared/page/progress.tsx'
import { type ImportRecord, readRecords } from './records.ts'
import { type ImportState, runImport } from './run-import.ts'
import { TEXT } from './text.ts'
import './import.css'

const FILE_MAX_BYTES = 25 * 1024 * 1024 // as the service's own import; the browser holds it in memory
const BAD_SHOWN = 10

interface ImportFormProps {
  /** What one record is, such as "member". */
  what: string
  /** Default: with an s. */
  many?: string
  /** Columns of CSV that count. */
  columns: readonly string[]
  example: string
  hint: string
  /** Records of one request. */
  size: number
  send: (records: readonly ImportRecord[]) => Promise<Answer<unknown>>
  /** Why a record cannot be stored, if the service passes over such ones without a word. */
  check?: (record: ImportRecord) => string | undefined
  /** Something was stored; called at the end. */
  onStored: () => void
  onClose: () => void
}

/** Choose or paste, see how much it is, watch it go in, read what was left out. */
export function ImportForm(props: ImportFormProps) {
  const { what, many = `${what}s`, columns, example, hint, size, send, check, onStored, onClose } = props
  const [text, setText] = useState('')
  const [fileName, setFileName] = useState<string>()
  const [fileFault, setFileFault] = useState<string>()
  const [state, setState] = useState<ImportState>()
  const [isOver, setOver] = useState(false)
  const isStopped = useRef(false)
  const picker = useRef<HTMLInputElement>(null)
  useEffect(
    () => () => {
      isStopped.current = true // the window was closed
    },
    [],
  )
  const read = text === '' ? undefined : readRecords(text, columns)
  const records = read && 'records' in read ? read.records : []
  const counted = countOf(records.length, what, many)
  const chooseFile = async (file: File | undefined) => {
    if (file === undefined) return
    setFileFault(file.size > FILE_MAX_BYTES ? TEXT.tooLarge(formatBytes(FILE_MAX_BYTES)) : undefined)
    setFileName(file.name)
    if (file.size > FILE_MAX_BYTES) return setText('')
    try {
      setText(await file.text())
    } catch {
      setFileFault(TEXT.cannotRead)
    }
  }
  const start = async () => {
    isStopped.current = false
    setState({ done: 0, bad: [] })
    const final = await runImport({
      records,
      size,
      send,
      check,
      onProgress: setState,
      isStopped: () => isStopped.current,
    })
    setState(final)
    setOver(true)
    if (final.done > 0) onStored()
  }
  if (state !== undefined)
    return (
      <RunningImport
        {...{ state, isOver, what, many, onClose }}
        total={records.length}
        onStop={() => {
          isStopped.current = true
        }}
      />
    )
  const fault = fileFault ?? (read && 'fault' in read ? read.fault : undefined)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (records.length > 0) void start()
      }}
    >
      <Stack gap="sm">
        <div className="import-file">
          <input
            ref={picker}
            type="file"
            className="visually-hidden"
            tabIndex={-1}
            aria-label={TEXT.file}
            accept=".csv,.json,.txt,text/csv,application/json,text/plain"
            onChange={(event) => void chooseFile(event.currentTarget.files?.[0])}
          />
          <Button
            variant="default"
            leftSection={<Icon name="file" size={16} />}
            onClick={() => picker.current?.click()}
            data-autofocus
          >
            {TEXT.choose}
          </Button>
          <span className="dimmed breakable">{fileName ?? hint}</span>
        </div>
        {fileName === undefined && (
          <Textarea
            label={TEXT.paste}
            className="import-text"
            placeholder={example}
            minRows={5}
            maxRows={10}
            autosize
            spellCheck={false}
            autoCapitalize="none"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
        )}
        {fault !== undefined && (
          <Text size="sm" c="red" role="alert" className="breakable">
            {fault}
          </Text>
        )}
        {records.length > 0 && (
          <Text size="sm" role="status">
            {TEXT.found(counted)}
          </Text>
        )}
      </Stack>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button type="submit" disabled={records.length === 0}>
          {TEXT.start(counted)}
        </Button>
      </Group>
    </form>
  )
}

interface RunningImportProps {
  state: ImportState
  isOver: boolean
  total: number
  what: string
  many: string
  onStop: () => void
  onClose: () => void
}

function RunningImport({ state, isOver, total, what, many, onStop, onClose }: RunningImportProps) {
  return (
    <Stack gap="md">
      <ProgressLine label={TEXT.importing} done={state.done} of={total} what={what} many={many} />
      {isOver && <Outcome state={state} counted={(count) => countOf(count, what, many)} />}
      <Group justify="flex-end">
        {isOver ? (
          <Button onClick={onClose}>{TEXT.close}</Button>
        ) : (
          <Button variant="default" onClick={onStop}>
            {TEXT.stop}
          </Button>
        )}
      </Group>
    </Stack>
  )
}

function Outcome({
  state: { done, bad, fault },
  counted,
}: {
  state: ImportState
  counted: (count: number) => string
}) {
  return (
    <>
      {fault !== undefined && (
        <Alert color="red" title={TEXT.stopped} role="alert" className="breakable">
          {fault}
        </Alert>
      )}
      <Text size="sm" role="status">
        <strong>{TEXT.done(counted(done - bad.filter(({ number }) => number <= done).length))}</strong>
        {bad.length > 0 && `, ${TEXT.skipped(counted(bad.length))}:`}
      </Text>
      {bad.length > 0 && (
        <ul className="import-bad">
          {bad.slice(0, BAD_SHOWN).map(({ number, why }) => (
            <li key={number} className="breakable">
              <strong>{TEXT.line(number)}</strong> {why}
            </li>
          ))}
          {bad.length > BAD_SHOWN && <li>{TEXT.more(bad.length - BAD_SHOWN)}</li>}
        </ul>
      )}
    </>
  )
}

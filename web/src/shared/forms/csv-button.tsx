import { Button } from '@mantine/core'
import { useState } from 'react'
import { saveFile } from '../../api.ts'
import { Icon } from '../../look/icons.tsx'
import { notify } from '../page/notices.tsx'

interface CsvButtonProps {
  label: string
  path: string
  /** Name of the file. */
  name: string
  /** What is asked for, of an operation that takes a body. */
  query?: () => object
}

/** Saves the answer of an operation as a CSV file. */
export function CsvButton({ label, path, name, query }: CsvButtonProps) {
  const [isBusy, setBusy] = useState(false)
  const save = async () => {
    setBusy(true)
    const accept = { Accept: 'text/csv' }
    const asked = query && {
      method: 'POST',
      headers: { ...accept, 'Content-Type': 'application/json' },
      body: JSON.stringify(query()),
    }
    const answer = await saveFile(path, name, asked ?? { headers: accept })
    setBusy(false)
    if (!answer.ok) notify({ text: answer.failure.message, tone: 'bad' })
  }
  return (
    <Button
      variant="default"
      size="sm"
      loading={isBusy}
      leftSection={<Icon name="download" size={16} />}
      onClick={() => void save()}
    >
      {label}
    </Button>
  )
}

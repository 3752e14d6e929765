import { Alert, Text } from '@mantine/core'
import { CopyButton } from '../base/copy-button.tsx'
import type { ServiceFault } from './domains-api.ts'
import { DOMAIN_TEXT as TEXT } from './text.ts'

/** Records of the service itself that are wrong: right records of the domain are of no use without them. */
export function ServiceFaults({ faults }: { faults: readonly ServiceFault[] }) {
  if (faults.length === 0) return null
  const isMissing = faults.some(({ state }) => state === 'missing')
  return (
    <Alert
      color={isMissing ? 'red' : 'yellow'}
      mb="md"
      title={isMissing ? TEXT.serviceMissing : TEXT.serviceFaults}
    >
      <Text size="sm">{TEXT.serviceWhy}</Text>
      {faults.map(({ sentence, records: [record] }) => (
        <div className="service-fault" key={sentence}>
          <Text size="sm" className="breakable">
            {sentence}
          </Text>
          {record !== undefined && record.value !== null && (
            <CopyButton text={record.value} what={TEXT.valueFor(record.name)} />
          )}
        </div>
      ))}
    </Alert>
  )
}

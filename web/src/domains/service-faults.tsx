import { Alert, Text } from '@mantine/core'
import { CopyButton } from '../copy-button.tsx'
import type { ServiceFault } from './domains-api.ts'

/** Records of the service itself that are wrong: right records of the domain are of no use without them. */
export function ServiceFaults({ faults }: { faults: readonly ServiceFault[] }) {
  if (faults.length === 0) return null
  const isMissing = faults.some(({ state }) => state === 'missing')
  return (
    <Alert
      color={isMissing ? 'red' : 'yellow'}
      mb="md"
      title={isMissing ? 'Records of this service are missing' : 'Records of this service need a look'}
    >
      <Text size="sm">
        The records below refer to host names of this service. Its operator publishes those, once for all
        domains.
      </Text>
      {faults.map(({ sentence, records: [record] }) => (
        <div className="service-fault" key={sentence}>
          <Text size="sm" className="breakable">
            {sentence}
          </Text>
          {record !== undefined && record.value !== null && (
            <CopyButton text={record.value} what={`the value for ${record.name}`} />
          )}
        </div>
      ))}
    </Alert>
  )
}

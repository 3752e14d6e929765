import { Button, Group, Modal, Text } from '@mantine/core'
import { CopyButton } from '../../base/copy-button.tsx'
import { saveText } from '../../shared/save-text.ts'
import { TEXT } from './text.ts'

/** Shown once, after they were made. */
export function RecoveryCodes({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
  const text = codes.join('\n')
  return (
    <Modal
      opened
      onClose={onClose}
      title={<strong>{TEXT.codesTitle}</strong>}
      centered
      closeOnClickOutside={false}
      withCloseButton={false}
    >
      <Text size="sm">{TEXT.codesWhy}</Text>
      <ul className="profile-codes" aria-label={TEXT.codes}>
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <Group justify="space-between" mt="lg">
        <CopyButton text={text} what={TEXT.codes} />
        <Button
          variant="default"
          onClick={() => saveText([text], 'sendwright-recovery-codes.txt', 'text/plain')}
        >
          {TEXT.codesSave}
        </Button>
        <Button onClick={onClose} data-autofocus>
          {TEXT.codesKept}
        </Button>
      </Group>
    </Modal>
  )
}

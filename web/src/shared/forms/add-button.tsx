import { Button } from '@mantine/core'
import { Icon } from '../../look/icons.tsx'

/** Opens what adds something to a list. */
export const AddButton = ({ label, onClick }: { label: string; onClick: () => void }) => (
  <Button leftSection={<Icon name="plus" size={16} />} onClick={onClick}>
    {label}
  </Button>
)

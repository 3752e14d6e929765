import { Kbd, Text } from '@mantine/core'
import { Icon } from '../look/icons.tsx'

export function NothingOpen() {
  return (
    <div className="nothing-open">
      <Icon name="mail" size={40} />
      <Text mt="sm">Choose a message to read it here</Text>
      <Text size="xs" mt={6}>
        <Kbd>↑</Kbd> <Kbd>↓</Kbd> to walk through the list, <Kbd>Enter</Kbd> to open, <Kbd>/</Kbd> to search
      </Text>
    </div>
  )
}

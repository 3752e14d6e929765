import { Switch, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { sessionQuery, useMay, useSession } from '../../session.ts'
import { Refusal } from '../../shared/forms/action-button.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { setStrict } from './limits-api.ts'
import { TEXT } from './text.ts'

/** Whether calls with parameters that no operation knows are refused. */
export function UnknownParameters() {
  const { account } = useSession()
  const mayChange = useMay({ area: 'account', access: 'write' })
  const queries = useQueryClient()
  const saving = useSending({
    mutationFn: setStrict,
    async onSuccess(_, isStrict) {
      notify({ text: isStrict ? TEXT.strictOn : TEXT.strictOff })
      await queries.invalidateQueries({ queryKey: sessionQuery.queryKey })
    },
  })
  return (
    <Panel title={TEXT.unknown}>
      <Text size="sm" c="dimmed" mb="sm">
        {TEXT.unknownWhy}
      </Text>
      <Switch
        label={TEXT.strict}
        checked={saving.isPending ? saving.variables : account.strict_parameters}
        disabled={!mayChange}
        onChange={(event) => {
          if (!saving.isPending) saving.mutate(event.currentTarget.checked)
        }}
      />
      {saving.error && <Refusal error={saving.error} />}
    </Panel>
  )
}

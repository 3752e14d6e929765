import { Alert, Button } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { beginPasskeySignIn, signInWithPasskey } from '../api.ts'
import { signInMethodsQuery, valueOrThrow } from '../queries.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { askPasskey, hasPasskeys } from './passkey-client.ts'
import { PASSKEY_TEXT as TEXT } from './text.ts'

/** Signs in without address and password, on pages and in browsers where that works. */
export function PasskeyButton() {
  const queries = useQueryClient()
  const methods = useQuery(signInMethodsQuery)
  const login = useSending({
    mutationFn: async () => {
      const options = valueOrThrow(await beginPasskeySignIn())
      return valueOrThrow(await signInWithPasskey(await askPasskey(options)))
    },
    onSuccess: () => queries.resetQueries(),
  })
  if (methods.data?.passkey?.origin !== window.location.origin || !hasPasskeys()) return null
  return (
    <>
      <Button
        fullWidth
        mt="sm"
        variant="default"
        loading={login.isPending || login.isSuccess}
        onClick={() => login.mutate()}
      >
        {TEXT.signIn}
      </Button>
      {login.error && (
        <Alert color="red" mt="sm" role="alert">
          {login.error.message.replace(/\.?$/, '.')}
        </Alert>
      )}
    </>
  )
}

import { Alert, Button, Divider } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { beginProviderSignIn } from '../api.ts'
import { signInMethodsQuery, valueOrThrow } from '../queries.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { TEXT } from './text.ts'

/**
 * Signs in with the operator's OpenID Connect provider, if there is one: the browser leaves for its page.
 * `proof`: the provider asks again who is there.
 */
export function ProviderButton({ proof = false }: { proof?: boolean }) {
  const methods = useQuery(signInMethodsQuery)
  const begin = useSending({
    mutationFn: async () => valueOrThrow(await beginProviderSignIn(proof)),
    onSuccess: ({ url }) => window.location.assign(url),
  })
  const provider = methods.data?.oidc
  if (!provider) return null
  return (
    <>
      <Button
        fullWidth
        mt="lg"
        variant="default"
        loading={begin.isPending || begin.isSuccess}
        onClick={() => begin.mutate()}
      >
        {TEXT.provider(provider.label)}
      </Button>
      {begin.error && (
        <Alert color="red" mt="sm" role="alert">
          {begin.error.message}.
        </Alert>
      )}
      {!proof && <Divider mt="lg" label={TEXT.or} />}
    </>
  )
}

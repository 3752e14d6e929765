/** How people come onto a list: title, double opt-in and the hosted form. */
import { NativeSelect, Skeleton, Switch, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { valueOrThrow } from '../../queries.ts'
import { Copyable } from '../../shared/copyable.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { Failure } from '../../shared/page/states.tsx'
import { LANGUAGES, LISTS_KEY, type ListConsent, readConsent, updateConsent } from './lists-api.ts'
import { TEXT } from './text.ts'

export function ConsentForm(props: { list: string; onSaved: () => unknown; onClose: () => void }) {
  const { list, onClose } = props
  const consent = useQuery({
    queryKey: [LISTS_KEY, 'consent', list],
    queryFn: async ({ signal }) => valueOrThrow(await readConsent(list, signal)),
  })
  if (consent.data !== undefined) return <Fields {...props} consent={consent.data} />
  return (
    <FormWindow
      {...{ title: TEXT.consent, submit: TEXT.save, busy: false, isComplete: false, error: null }}
      onSubmit={() => {}}
      onClose={onClose}
    >
      {consent.error ? (
        <Failure title={TEXT.consent} error={consent.error} retry={consent.refetch} />
      ) : (
        <Skeleton height={320} role="status" aria-label={TEXT.consent} />
      )}
    </FormWindow>
  )
}

function Fields(props: { list: string; consent: ListConsent; onSaved: () => unknown; onClose: () => void }) {
  const { list, consent, onSaved, onClose } = props
  const form = useForm({
    initial: {
      title: consent.title,
      language: consent.language as string,
      confirm: consent.confirm,
      form: consent.form,
      redirect_url: consent.redirect_url ?? '',
      template: consent.template ?? '',
      page_template: consent.page_template ?? '',
      expire_days: String(consent.expire_days),
    },
    send: async ({ confirm, form, ...texts }) =>
      valueOrThrow(
        await updateConsent(list, {
          ...texts,
          confirm: confirm ? 'yes' : 'no',
          form: form ? 'yes' : 'no',
        }),
      ),
    changes: LISTS_KEY,
    onDone: onSaved,
  })
  return (
    <FormWindow title={TEXT.consent} submit={TEXT.save} isComplete {...form.window} onClose={onClose}>
      <TextInput
        label={TEXT.listTitle}
        description={TEXT.listTitleHint}
        {...form.field('title')}
        data-autofocus
      />
      <Switch
        label={TEXT.confirm}
        description={TEXT.confirmHint}
        checked={form.values.confirm}
        onChange={(event) => form.set({ confirm: event.currentTarget.checked })}
      />
      <Switch
        label={TEXT.form}
        description={TEXT.formHint}
        checked={form.values.form}
        onChange={(event) => form.set({ form: event.currentTarget.checked })}
      />
      {consent.form_url !== undefined && (
        <div>
          <Text size="sm">{TEXT.formUrl}</Text>
          <Copyable text={consent.form_url} what={TEXT.formUrl} />
          <Text size="sm">{TEXT.formHtml}</Text>
          <Copyable text={consent.form_html ?? ''} what={TEXT.formHtml} />
        </div>
      )}
      <TextInput
        label={TEXT.redirect}
        description={TEXT.redirectHint}
        inputMode="url"
        {...EXACT}
        {...form.field('redirect_url')}
      />
      <NativeSelect
        label={TEXT.language}
        data={LANGUAGES.map(([value, label]) => ({ value, label }))}
        {...form.field('language')}
      />
      <TextInput
        label={TEXT.template}
        description={TEXT.templateHint}
        {...EXACT}
        {...form.field('template')}
      />
      <TextInput
        label={TEXT.pageTemplate}
        description={TEXT.pageTemplateHint}
        {...EXACT}
        {...form.field('page_template')}
      />
      <TextInput label={TEXT.expireDays} inputMode="numeric" {...EXACT} {...form.field('expire_days')} />
    </FormWindow>
  )
}

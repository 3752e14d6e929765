# frozen_string_literal: true

# Makes the calls of Mailgun's Ruby client: ruby calls.rb URL KEY DOMAIN NEW-DOMAIN
# The gem mailgun-ruby is taken from Ruby's path. What is printed and read: libraries.ts.
require 'stringio'
require 'mailgun-ruby'

url, key, domain, new_domain = ARGV
$stdout.sync = true

# One client for each version of the API.
CLIENTS = Hash.new do |clients, version|
  clients[version] = Mailgun::Client.new(key, url.delete_prefix('http://'), version, false)
end
client = CLIENTS['v3']

# Makes one call; the client raises for other statuses than 2xx.
def call(name)
  puts JSON.generate(call: name)
  $stdin.gets
  yield
end

# Repeats a call until the response holds what is looked for.
def wait_for(name, found_in, &make)
  200.times do
    found = found_in.call(call(name, &make))
    return found if found

    sleep 0.05
  end
  raise "#{name}: not found"
end

def equal(found, expected)
  raise "#{found.inspect} instead of #{expected.inspect}" unless found == expected
end

# Sending
message = Mailgun::MessageBuilder.new
message.from("shop@#{domain}", 'full_name' => 'Shop')
message.add_recipient(:to, 'alice@example.org')
message.add_recipient(:to, 'nobody@example.org')
message.subject('Größe 17')
message.body_text('Dear %recipient.name%')
message.body_html('<p>Dear <b>%recipient.name%</b></p>')
message.add_tag('order')
message.add_tag('ruby')
message.track_opens(true)
message.variable('order', { number: 17 })
message.add_custom_parameter('recipient-variables', JSON.generate(
  'alice@example.org' => { name: 'Alice' }, 'nobody@example.org' => { name: 'Nobody' }
))
message.add_attachment(StringIO.new("Packed by Ann.\n"), 'note.txt')
sent = call('send_message, builder') { client.send_message(domain, message).to_h }
equal(sent['message'], 'Queued. Thank you.')
call('send_message') do
  client.send_message(domain, from: "shop@#{domain}", to: 'bob@example.org', subject: 'Hello', text: 'Hello')
end
call('send_message, MIME') do
  client.send_message(domain, from: "shop@#{domain}", to: 'bob@example.org',
                              message: "From: shop@#{domain}\r\nTo: bob@example.org\r\nSubject: MIME\r\n\r\nHello\r\n")
end
batch = Mailgun::BatchMessage.new(client, domain)
batch.from("shop@#{domain}")
batch.subject('Batch')
batch.body_text('Dear %recipient.first%')
batch.add_recipient(:to, 'carol@example.org', 'first' => 'Carol')
batch.add_recipient(:to, 'dora@example.org', 'first' => 'Dora')
equal(call('BatchMessage.finalize') { batch.finalize }.values, [2])

# Events
delivered = wait_for('get, events', ->(page) { page.to_h['items'].first }) do
  client.get("#{domain}/events", event: 'delivered', recipient: 'alice@example.org')
end
equal(delivered['tags'], %w[order ruby])
failed = wait_for('get, failed events', ->(page) { page.to_h['items'].first }) do
  client.get("#{domain}/events", event: 'failed', severity: 'permanent')
end
equal(failed['recipient'], 'nobody@example.org')
events = Mailgun::Events.new(client, domain)
equal(call('Events.get') { events.get(event: 'accepted', limit: 2) }.to_h['items'].size, 2)
equal(call('Events.next') { events.next }.to_h['items'].empty?, false)
stored = call('get, stored message') { client.get("domains/#{domain}/messages/#{delivered['storage']['key']}") }
equal(stored.to_h['subject'], 'Größe 17')

# Domains
domains = Mailgun::Domains.new(client)
domains4 = Mailgun::Domains.new(CLIENTS['v4'])
call('Domains.list') { domains4.list }
equal(call('Domains.create') { domains4.create(new_domain) }['domain']['name'], new_domain)
call('Domains.get') { domains.get(new_domain) }
call('Domains.update') { domains4.update(new_domain, spam_action: 'tag', web_scheme: 'https') }
call('Domains.verify') { domains4.verify(new_domain) }
call('Domains.update_domain_tracking_open_settings') do
  domains.update_domain_tracking_open_settings(new_domain, active: true)
end
call('Domains.update_domain_tracking_click_settings') do
  domains.update_domain_tracking_click_settings(new_domain, active: 'yes')
end
call('Domains.update_domain_tracking_unsubscribe_settings') do
  domains.update_domain_tracking_unsubscribe_settings(
    new_domain, active: 'yes', html_footer: '<a href="%unsubscribe_url%">x</a>', text_footer: '%unsubscribe_url%'
  )
end
tracking = call('Domains.get_domain_tracking_settings') { domains.get_domain_tracking_settings(new_domain) }
equal(tracking['tracking']['open']['active'], true)
call('Domains.create_smtp_credentials') do
  domains.create_smtp_credentials(new_domain, login: 'ann', password: 'long enough 17')
end
call('Domains.update_smtp_credentials') do
  domains.update_smtp_credentials(new_domain, 'ann', password: 'longer than before')
end
call('Domains.delete_smtp_credentials') { domains.delete_smtp_credentials(new_domain, 'ann') }
call('DomainKeys.create_domain_key') do
  Mailgun::DomainKeys.new(CLIENTS['v1']).create_domain_key(signing_domain: new_domain, selector: 'ruby', bits: 2048)
end
call('DomainKeys.list_domain_keys') { Mailgun::DomainKeys.new(CLIENTS['v1']).list_domain_keys(limit: 10) }
keys = Mailgun::DomainKeys.new(CLIENTS['v4'])
equal(call('DomainKeys.get_domain_keys') { keys.get_domain_keys(new_domain) }['items'].size, 2)
call('DomainKeys.update_domain_dkim_authority') do
  Mailgun::DomainKeys.new(client).update_domain_dkim_authority(new_domain, self: true)
end
# DomainKeys.delete_domain_key sends its parameters as one, `params`, whose value is Ruby's notation of a hash.

# Suppressions
suppressions = client.suppressions(domain)
[['bounce', { code: 550, error: 'Gone' }], ['complaint', {}], ['unsubscribe', { tag: '*' }]].each do |kind, options|
  call("create_#{kind}") { suppressions.public_send("create_#{kind}", { address: 'dora@example.org', **options }) }
  call("create_#{kind}s") do
    suppressions.public_send("create_#{kind}s", [{ address: 'eve@example.org' }, { address: 'fred@example.org' }])
  end
  found = call("get_#{kind}") { suppressions.public_send("get_#{kind}", 'dora@example.org') }
  equal(found.to_h['address'], 'dora@example.org')
  page = call("list_#{kind}s") { suppressions.public_send("list_#{kind}s", limit: 2) }
  equal(page.to_h['items'].size, 2)
  equal(call("list_#{kind}s, next") { suppressions.next }.to_h['items'].empty?, false)
  call("delete_#{kind}") { suppressions.public_send("delete_#{kind}", 'dora@example.org') }
end
call('delete_all_bounces') { suppressions.delete_all_bounces }

# Templates
templates = Mailgun::Templates.new(client)
call('Templates.create') do
  templates.create(domain, name: 'welcome', description: 'First mail', template: '<p>Hello {{name}}</p>', tag: 'v1')
end
call('Templates.create_version') do
  templates.create_version(domain, 'welcome', tag: 'v2', template: '<p>Hi {{name}}</p>', active: 'yes')
end
info = call('Templates.info') { templates.info(domain, 'welcome', active: 'yes') }
equal(info['template']['version']['tag'], 'v2')
call('Templates.update') { templates.update(domain, 'welcome', description: 'Second') }
equal(call('Templates.list') { templates.list(domain, limit: 10) }.size, 1)
call('Templates.info_version') { templates.info_version(domain, 'welcome', 'v1') }
call('Templates.update_version') { templates.update_version(domain, 'welcome', 'v1', comment: 'changed') }
call('Templates.template_versions_list') { templates.template_versions_list(domain, 'welcome') }
builder = Mailgun::MessageBuilder.new
builder.from("shop@#{domain}")
builder.add_recipient(:to, 'alice@example.org')
builder.subject('Welcome')
builder.template('welcome')
builder.template_version('v2')
builder.template_text(true)
call('send_message, template') { client.send_message(domain, builder) }
equal(call('Templates.delete_version') { templates.delete_version(domain, 'welcome', 'v1') }, true)
equal(call('Templates.remove') { templates.remove(domain, 'welcome') }, true)
equal(call('Templates.remove_all') { templates.remove_all(domain) }, true)

# Mailing lists
list = "news@#{domain}"
call('post, lists') { client.post('lists', address: list, name: 'News', access_level: 'readonly') }
call('get, lists') { client.get('lists/pages', limit: 5) }
call('put, lists') { client.put("lists/#{list}", name: 'Weekly news') }
call('post, member') do
  client.post("lists/#{list}/members", address: 'alice@example.org', name: 'Alice', vars: '{"age": 26}', subscribed: true)
end
call('post, members.json') do
  client.post("lists/#{list}/members.json", members: '["bob@example.org", {"address": "carol@example.org"}]', upsert: true)
end
equal(call('get, members') { client.get("lists/#{list}/members/pages", limit: 5) }.to_h['items'].size, 3)
call('put, member') { client.put("lists/#{list}/members/alice@example.org", subscribed: false) }
call('delete, member') { client.delete("lists/#{list}/members/alice@example.org") }
call('delete, lists') { client.delete("lists/#{list}") }

# Webhooks
webhooks = Mailgun::Webhooks.new(client)
hook = 'https://hooks.example/mail'
equal(call('Webhooks.create') { webhooks.create(domain, 'clicked', hook) }, true)
call('Webhooks.list') { webhooks.list(domain) }
equal(call('Webhooks.get') { webhooks.get(domain, 'clicked') }, [hook])
equal(call('Webhooks.update') { webhooks.update(domain, 'clicked', "#{hook}2") }, true)
equal(call('Webhooks.remove') { webhooks.remove(domain, 'clicked') }, true)

# Routes
route = call('post, routes') do
  client.post('routes', priority: 1, description: 'Support', expression: "match_recipient('support@#{domain}')",
                        action: ["forward('https://hooks.example/in')", 'stop()'])
end.to_h['route']
equal(route['actions'].size, 2)
call('get, routes') { client.get('routes', skip: 0, limit: 5) }
call('get, route') { client.get("routes/#{route['id']}") }
call('put, route') { client.put("routes/#{route['id']}", priority: 2) }
call('delete, route') { client.delete("routes/#{route['id']}") }

# Figures
call('Domains.get_domain_stats') { domains.get_domain_stats(domain, event: 'accepted', duration: '1d') }
metrics = call('Metrics.account_metrics') do
  Mailgun::Metrics.new(CLIENTS['v1']).account_metrics(
    duration: '1d', dimensions: ['time'], metrics: %w[accepted_count delivered_count], include_aggregates: true
  )
end
equal(metrics['aggregates']['metrics']['accepted_count'] >= 6, true)
call('Metrics.account_usage_metrics') do
  Mailgun::Metrics.new(CLIENTS['v1']).account_usage_metrics(
    duration: '1d', dimensions: ['time'], metrics: ['processed_count']
  )
end
call('Logs.account_logs') do
  Mailgun::Logs.new(CLIENTS['v1']).account_logs(
    duration: '1d', events: ['delivered'], pagination: { sort: 'timestamp:asc', limit: 5 }
  )
end
tags = Mailgun::Tags.new(client)
equal(call('Tags.get_tags') { tags.get_tags(domain) }.size, 2)
call('Tags.get_tag') { tags.get_tag(domain, 'order') }
equal(call('Tags.update') { tags.update(domain, 'order', description: 'Orders') }, true)
call('Tags.get_tag_stats') { tags.get_tag_stats(domain, 'order', event: 'accepted') }
call('Tags.get_countries_aggregated_stats') { tags.get_countries_aggregated_stats(domain, 'order') }
call('Tags.get_providers_aggregated_stats') { tags.get_providers_aggregated_stats(domain, 'order') }
call('Tags.get_devices_aggregated_stats') { tags.get_devices_aggregated_stats(domain, 'order') }
analytics = Mailgun::AnalyticsTags.new(CLIENTS['v1'])
call('AnalyticsTags.list') { analytics.list }
equal(call('AnalyticsTags.update') { analytics.update('order', 'All orders') }, true)
call('AnalyticsTags.limits') { analytics.limits }
equal(call('AnalyticsTags.remove') { analytics.remove('ruby') }, true)
equal(call('Tags.remove') { tags.remove(domain, 'order') }, true)

# The account
call('get, ips') { client.get('ips') }
call('get, domain ips') { client.get("domains/#{domain}/ips") }
call('delete, domain') { client.delete("domains/#{new_domain}") }

puts JSON.generate(versions: { 'mailgun-ruby' => Mailgun::VERSION, faraday: Faraday::VERSION, ruby: RUBY_VERSION })

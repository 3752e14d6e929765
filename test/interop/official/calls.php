<?php
// Makes the calls of Mailgun's PHP client: php calls.php URL KEY DOMAIN NEW-DOMAIN
// INTEROP_PHP_AUTOLOAD: file that loads mailgun/mailgun-php, as Composer writes. What is printed and read: libraries.ts.
require getenv('INTEROP_PHP_AUTOLOAD');

use Composer\InstalledVersions;
use Mailgun\Mailgun;

set_error_handler(function ($level, $what, $file, $line) {
    if (!($level & (E_DEPRECATED | E_USER_DEPRECATED))) throw new ErrorException($what, 0, $level, $file, $line);
    return true;
});

[, $url, $key, $domain, $newDomain] = $argv;
$mailgun = Mailgun::create($key, $url);

/** Makes one call; the client throws for other statuses than 2xx. */
function call(string $name, callable $make)
{
    echo json_encode(['call' => $name]), "\n";
    fgets(STDIN);
    return $make();
}

/** Repeats a call until the response holds what is looked for. */
function waitFor(string $name, callable $make, callable $foundIn)
{
    for ($tries = 0; $tries < 200; $tries++) {
        $found = $foundIn(call($name, $make));
        if ($found) return $found;
        usleep(50_000);
    }
    throw new Exception("$name: not found");
}

function equal($found, $expected): void
{
    if ($found !== $expected) throw new Exception(var_export($found, true).' instead of '.var_export($expected, true));
}

// Sending
$sent = call('messages.send', fn () => $mailgun->messages()->send($domain, [
    'from' => "Shop <shop@$domain>",
    'to' => ['alice@example.org', 'nobody@example.org'],
    'subject' => 'Größe 17',
    'text' => 'Dear %recipient.name%',
    'html' => '<p>Dear <b>%recipient.name%</b></p>',
    'o:tag' => ['order', 'php'],
    'o:tracking' => 'yes',
    'v:order' => '17',
    'recipient-variables' => json_encode([
        'alice@example.org' => ['name' => 'Alice'], 'nobody@example.org' => ['name' => 'Nobody'],
    ]),
    'attachment' => [['fileContent' => "Packed by Ann.\n", 'filename' => 'note.txt']],
]));
equal($sent->getMessage(), 'Queued. Thank you.');
call('messages.sendMime', fn () => $mailgun->messages()->sendMime($domain, ['bob@example.org'],
    "From: shop@$domain\r\nTo: bob@example.org\r\nSubject: MIME\r\n\r\nHello\r\n", ['o:tag' => ['mime']]));
$batch = $mailgun->messages()->getBatchMessage($domain);
$batch->setFromAddress("shop@$domain", ['full_name' => 'Shop']);
$batch->setSubject('Batch');
$batch->setTextBody('Dear %recipient.first%');
$batch->addToRecipient('carol@example.org', ['first' => 'Carol']);
$batch->addToRecipient('dora@example.org', ['first' => 'Dora']);
call('batchMessage.finalize', fn () => $batch->finalize());
equal(count($batch->getMessageIds()), 1);
call('messages.getMessageQueueStatus', fn () => $mailgun->messages()->getMessageQueueStatus($domain));

// Events, and the stored message
$delivered = waitFor('events.get', fn () => $mailgun->events()->get($domain, [
    'event' => 'delivered', 'recipient' => 'alice@example.org', 'limit' => 5]), fn ($page) => $page->getItems())[0];
equal($delivered->getTags(), ['order', 'php']);
equal($delivered->getUserVariables(), ['order' => '17']);
$failed = waitFor('events.get, failed', fn () => $mailgun->events()->get($domain, [
    'event' => 'failed', 'severity' => 'permanent']), fn ($page) => $page->getItems())[0];
equal($failed->getRecipient(), 'nobody@example.org');
$page = call('events.get, first page', fn () => $mailgun->events()->get($domain, ['event' => 'accepted', 'limit' => 2]));
$next = call('events.nextPage', fn () => $mailgun->events()->nextPage($page));
equal(count($next->getItems()), 2);
$storageKey = $delivered->getStorage()['key'];
$stored = call('messages.retrieveStoredMessage', fn () => $mailgun->messages()->retrieveStoredMessage($domain, $storageKey));
equal($stored->getSubject(), 'Größe 17');
$stored = call('messages.show', fn () => $mailgun->messages()->show($delivered->getStorage()['url']));
equal($stored->getBodyPlain() !== '', true);

// Domains
call('domains.index', fn () => $mailgun->domains()->index());
$created = call('domains.create', fn () => $mailgun->domains()->create($newDomain, 'long enough 17', 'disabled', false));
equal($created->getDomain()->getName(), $newDomain);
call('domains.show', fn () => $mailgun->domains()->show($newDomain));
call('domainsV4.index', fn () => $mailgun->domainsV4()->index());
call('domainsV4.show', fn () => $mailgun->domainsV4()->show($newDomain));
call('domains.verify', fn () => $mailgun->domains()->verify($newDomain));
call('domains.updateWebScheme', fn () => $mailgun->domains()->updateWebScheme($newDomain, 'https'));
call('domains.updateWebPrefix', fn () => $mailgun->domains()->updateWebPrefix($newDomain, 'php'));
call('domains.updateConnection', fn () => $mailgun->domains()->updateConnection($newDomain, true, false));
$connection = call('domains.connection', fn () => $mailgun->domains()->connection($newDomain));
equal($connection->getRequireTLS(), true);
call('domains.updateClickTracking', fn () => $mailgun->domains()->updateClickTracking($newDomain, 'htmlonly'));
call('domains.updateOpenTracking', fn () => $mailgun->domains()->updateOpenTracking($newDomain, 'yes'));
call('domains.updateUnsubscribeTracking', fn () => $mailgun->domains()->updateUnsubscribeTracking(
    $newDomain, 'yes', '<a href="%unsubscribe_url%">x</a>', '%unsubscribe_url%'));
$tracking = call('domains.tracking', fn () => $mailgun->domains()->tracking($newDomain));
equal($tracking->getOpen()->isActive(), true);
call('domains.createCredential', fn () => $mailgun->domains()->createCredential($newDomain, 'ann', 'long enough 17'));
$credentials = call('domains.credentials', fn () => $mailgun->domains()->credentials($newDomain));
equal(count($credentials->getCredentials()) >= 1, true);
call('domains.updateCredential', fn () => $mailgun->domains()->updateCredential($newDomain, 'ann', 'longer than before'));
call('domains.deleteCredential', fn () => $mailgun->domains()->deleteCredential($newDomain, 'ann'));
call('domainKeys.createDomainKey', fn () => $mailgun->domainKeys()->createDomainKey($newDomain, 'php', '2048'));
call('domainKeys.listDomainKeys', fn () => $mailgun->domainKeys()->listDomainKeys($newDomain));
call('domainKeys.listKeysForDomains', fn () => $mailgun->domainKeys()->listKeysForDomains(10));

// Suppressions
$suppressions = $mailgun->suppressions();
foreach ([
    'bounces' => fn ($address) => $suppressions->bounces()->create($domain, $address, ['code' => '550', 'error' => 'Gone']),
    'complaints' => fn ($address) => $suppressions->complaints()->create($domain, $address),
    'unsubscribes' => fn ($address) => $suppressions->unsubscribes()->create($domain, $address, ['tag' => '*']),
    'whitelists' => fn ($address) => $suppressions->whitelists()->create($domain, $address),
] as $kind => $create) {
    $entries = $suppressions->{$kind}();
    call("$kind.create", fn () => $create('dora@example.org'));
    $found = call("$kind.show", fn () => $entries->show($domain, 'dora@example.org'));
    equal($kind === 'whitelists' ? $found->getValue() : $found->getAddress(), 'dora@example.org');
    $page = call("$kind.index", fn () => $entries->index($domain, 10));
    equal(count($page->getItems()) >= 1, true);
    call("$kind.nextPage", fn () => $entries->nextPage($page));
    call("$kind.delete", fn () => $entries->delete($domain, 'dora@example.org'));
    call("$kind.deleteAll", fn () => $entries->deleteAll($domain));
}

// Templates
call('templates.create', fn () => $mailgun->templates()->create($domain, 'welcome', '<p>Hello {{name}}</p>', null, 'v1', 'first', null, 'First mail'));
call('templates.show', fn () => $mailgun->templates()->show($domain, 'welcome'));
call('templates.index', fn () => $mailgun->templates()->index($domain, 10, 'first', ''));
call('messages.send, template', fn () => $mailgun->messages()->send($domain, [
    'from' => "shop@$domain", 'to' => 'alice@example.org', 'subject' => 'Welcome', 'template' => 'welcome',
    't:variables' => json_encode(['name' => 'Alice'])]));
call('templates.deleteTemplate', fn () => $mailgun->templates()->deleteTemplate($domain, 'welcome'));

// Mailing lists
$list = "news@$domain";
call('mailingList.create', fn () => $mailgun->mailingList()->create($list, 'News', 'Weekly', 'readonly'));
call('mailingList.show', fn () => $mailgun->mailingList()->show($list));
call('mailingList.update', fn () => $mailgun->mailingList()->update($list, ['name' => 'Weekly news']));
call('mailingList.pages', fn () => $mailgun->mailingList()->pages(10));
$members = $mailgun->mailingList()->member();
call('member.create', fn () => $members->create($list, 'alice@example.org', 'Alice', ['age' => 26]));
call('member.createMultiple', fn () => $members->createMultiple($list, ['bob@example.org', ['address' => 'carol@example.org', 'name' => 'Carol']], true));
$member = call('member.show', fn () => $members->show($list, 'alice@example.org'));
equal($member->getMember()->getVars(), ['age' => 26]);
$page = call('member.index', fn () => $members->index($list, 10));
equal(count($page->getItems()), 3);
call('member.update', fn () => $members->update($list, 'alice@example.org', ['subscribed' => 'no']));
call('member.delete', fn () => $members->delete($list, 'alice@example.org'));
call('mailingList.delete', fn () => $mailgun->mailingList()->delete($list));

// Webhooks
$hook = 'https://hooks.example/mail';
call('webhooks.create', fn () => $mailgun->webhooks()->create($domain, 'clicked', [$hook]));
call('webhooks.index', fn () => $mailgun->webhooks()->index($domain));
$one = call('webhooks.show', fn () => $mailgun->webhooks()->show($domain, 'clicked'));
equal($one->getWebhookUrls(), [$hook]);
call('webhooks.update', fn () => $mailgun->webhooks()->update($domain, 'clicked', [$hook, "{$hook}2"]));
call('webhooks.delete', fn () => $mailgun->webhooks()->delete($domain, 'clicked'));

// Routes
$created = call('routes.create', fn () => $mailgun->routes()->create(
    "match_recipient('support@$domain')", ["forward('https://hooks.example/in')", 'stop()'], 'Support', 1));
$id = $created->getRoute()->getId();
call('routes.index', fn () => $mailgun->routes()->index(10, 0));
call('routes.show', fn () => $mailgun->routes()->show($id));
call('routes.matchAddressToRoute', fn () => $mailgun->routes()->matchAddressToRoute("support@$domain"));
call('routes.update', fn () => $mailgun->routes()->update($id, "match_recipient('help@$domain')", ['stop()'], 'Help', 2));
call('routes.delete', fn () => $mailgun->routes()->delete($id));

// Figures
$total = call('stats.total', fn () => $mailgun->stats()->total($domain, ['event' => 'accepted', 'duration' => '1d']));
equal(count($total->getStats()) >= 1, true);
call('stats.totalAccount', fn () => $mailgun->stats()->totalAccount(['event' => 'accepted', 'duration' => '1d']));
call('stats.aggregateCountsByESP', fn () => $mailgun->stats()->aggregateCountsByESP($domain));
call('stats.aggregateByDevices', fn () => $mailgun->stats()->aggregateByDevices($domain));
call('stats.aggregateByCountry', fn () => $mailgun->stats()->aggregateByCountry($domain));
$metrics = call('metrics.loadMetrics', fn () => $mailgun->metrics()->loadMetrics([
    'start' => gmdate('r', time() - 86400), 'end' => gmdate('r', time() + 60), 'resolution' => 'day',
    'dimensions' => ['time'], 'metrics' => ['accepted_count', 'delivered_count'], 'include_aggregates' => true]));
equal(count($metrics->getItems()) >= 1, true);
$tags = call('tags.index', fn () => $mailgun->tags()->index($domain, 10));
equal(count($tags->getItems()) >= 3, true);
call('tags.show', fn () => $mailgun->tags()->show($domain, 'order'));
call('tags.update', fn () => $mailgun->tags()->update($domain, 'order', 'Orders'));
call('tags.stats', fn () => $mailgun->tags()->stats($domain, ['tag' => 'order', 'event' => 'accepted']));
call('tags.countries', fn () => $mailgun->tags()->countries($domain, 'order'));
call('tags.providers', fn () => $mailgun->tags()->providers($domain, 'order'));
call('tags.devices', fn () => $mailgun->tags()->devices($domain, 'order'));
call('tags.getTagLimits', fn () => $mailgun->tags()->getTagLimits($domain));
call('tags.delete', fn () => $mailgun->tags()->delete($domain, 'order'));

// The account
call('ips.index', fn () => $mailgun->ips()->index());
call('ips.domainIndex', fn () => $mailgun->ips()->domainIndex($domain));
call('ips.listIpPools', fn () => $mailgun->ips()->listIpPools());
call('subaccounts.index', fn () => $mailgun->subaccounts()->index());
$signing = call('accountManagement.getHttpSigningKey', fn () => $mailgun->accountManagement()->getHttpSigningKey());
call('domainKeys.deleteDomainKey', fn () => $mailgun->domainKeys()->deleteDomainKey($newDomain, 'php'));
call('domains.delete', fn () => $mailgun->domains()->delete($newDomain));

echo json_encode(['versions' => [
    'mailgun/mailgun-php' => InstalledVersions::getVersion('mailgun/mailgun-php'), 'php' => PHP_VERSION]]), "\n";

// Makes the calls of Mailgun's Go client: calls URL KEY DOMAIN NEW-DOMAIN
// It is built in a module that requires github.com/mailgun/mailgun-go/v5. What is printed and read: libraries.ts.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mailgun/mailgun-go/v5"
	"github.com/mailgun/mailgun-go/v5/events"
	"github.com/mailgun/mailgun-go/v5/mtypes"
)

var input = bufio.NewReader(os.Stdin)

// announce prints the call and waits for the line that lets it begin.
func announce(name string) {
	line, _ := json.Marshal(map[string]string{"call": name})
	fmt.Println(string(line))
	input.ReadString('\n')
}

// call makes one call; the client returns an error for other statuses than 2xx.
func call[T any](name string, make func() (T, error)) T {
	announce(name)
	result, err := make()
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return result
}

func do(name string, make func() error) {
	call(name, func() (struct{}, error) { return struct{}{}, make() })
}

// pages goes through an iterator and returns its items.
func pages[T any](name string, next func(context.Context, *[]T) bool, failure func() error) []T {
	return call(name, func() ([]T, error) {
		var all, page []T
		for next(ctx, &page) {
			all = append(all, page...)
		}
		return all, failure()
	})
}

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("%#v instead of %#v", found, expected))
	}
}

var ctx = context.Background()

// waitForEvent repeats a search for events until there is one.
func waitForEvent(mg *mailgun.Client, domain, name string, filter map[string]string) events.Event {
	for range 200 {
		found := call(name, func() ([]events.Event, error) {
			var page []events.Event
			it := mg.ListEvents(domain, &mailgun.ListEventOptions{Limit: 5, Filter: filter})
			it.Next(ctx, &page)
			return page, it.Err()
		})
		if len(found) > 0 {
			return found[0]
		}
		time.Sleep(50 * time.Millisecond)
	}
	panic(name + ": not found")
}

func main() {
	url, key, domain, newDomain := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	mg := mailgun.NewMailgun(key)
	if err := mg.SetAPIBase(url); err != nil {
		panic(err)
	}
	send(mg, domain)
	domains(mg, newDomain)
	suppressions(mg, domain)
	templates(mg, domain)
	lists(mg, domain)
	hooksAndRoutes(mg, domain)
	figures(mg, domain)
	do("DeleteDomain", func() error { return mg.DeleteDomain(ctx, newDomain) })
	versions, _ := json.Marshal(map[string]any{"versions": map[string]string{
		"mailgun-go": clientVersion(), "go": runtime.Version()}})
	fmt.Println(string(versions))
}

// clientVersion is of the module: the package's own Version stays at 5.0.0.
func clientVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/mailgun/mailgun-go/v5" {
			return module.Version
		}
	}
	return ""
}

func send(mg *mailgun.Client, domain string) {
	from := "Shop <shop@" + domain + ">"
	message := mailgun.NewMessage(domain, from, "Größe 17", "Dear %recipient.name%")
	message.SetHTML("<p>Dear <b>%recipient.name%</b></p>")
	message.AddRecipientAndVariables("alice@example.org", map[string]any{"name": "Alice"})
	message.AddRecipientAndVariables("nobody@example.org", map[string]any{"name": "Nobody"})
	message.AddTag("order", "go")
	message.SetTracking(true)
	message.AddVariable("order", "17")
	message.AddHeader("X-Order", "17")
	message.AddBufferAttachment("note.txt", []byte("Packed by Ann.\n"))
	sent := call("Send", func() (mtypes.SendMessageResponse, error) { return mg.Send(ctx, message) })
	equal(sent.Message, "Queued. Thank you.")
	mime := mailgun.NewMIMEMessage(domain, io.NopCloser(strings.NewReader("From: shop@"+domain+
		"\r\nTo: bob@example.org\r\nSubject: MIME\r\n\r\nHello\r\n")), "bob@example.org")
	call("Send, MIME", func() (mtypes.SendMessageResponse, error) { return mg.Send(ctx, mime) })

	delivered, ok := waitForEvent(mg, domain, "ListEvents", map[string]string{
		"event": "delivered", "recipient": "alice@example.org"}).(*events.Delivered)
	equal(ok, true)
	equal(delivered.Tags, []string{"order", "go"})
	equal(delivered.UserVariables, map[string]any{"order": "17"})
	equal(delivered.DeliveryStatus.Code, 250)
	failed, ok := waitForEvent(mg, domain, "ListEvents, failed", map[string]string{
		"event": "failed", "severity": "permanent"}).(*events.Failed)
	equal(ok, true)
	equal([]any{failed.Recipient, failed.DeliveryStatus.Code}, []any{"nobody@example.org", 550})
	it := mg.ListEvents(domain, &mailgun.ListEventOptions{Limit: 2, Filter: map[string]string{"event": "accepted"}})
	all := pages("ListEvents, all pages", it.Next, it.Err)
	equal(len(all), 3)
	stored := call("GetStoredMessage", func() (mtypes.StoredMessage, error) {
		return mg.GetStoredMessage(ctx, delivered.Storage.URL)
	})
	equal([]any{stored.Subject, len(stored.Attachments)}, []any{"Größe 17", 1})
	file := call("GetStoredAttachment", func() ([]byte, error) {
		return mg.GetStoredAttachment(ctx, stored.Attachments[0].URL)
	})
	equal(string(file), "Packed by Ann.\n")
	call("GetStoredMessageRaw", func() (mtypes.StoredMessageRaw, error) {
		return mg.GetStoredMessageRaw(ctx, delivered.Storage.URL)
	})
	call("ReSend", func() (mtypes.SendMessageResponse, error) {
		return mg.ReSend(ctx, delivered.Storage.URL, "carol@example.org")
	})
}

func domains(mg *mailgun.Client, domain string) {
	created := call("CreateDomain", func() (mtypes.GetDomainResponse, error) {
		return mg.CreateDomain(ctx, domain, &mailgun.CreateDomainOptions{
			SpamAction: mtypes.SpamActionDisabled, Wildcard: true, WebScheme: "https"})
	})
	equal([]any{created.Domain.Name, created.Domain.Wildcard}, []any{domain, true})
	equal(len(created.SendingDNSRecords) > 0, true)
	it := mg.ListDomains(&mailgun.ListDomainsOptions{Limit: 10})
	equal(len(pages("ListDomains", it.Next, it.Err)), 2)
	call("GetDomain", func() (mtypes.GetDomainResponse, error) { return mg.GetDomain(ctx, domain, nil) })
	call("VerifyDomain", func() (mtypes.GetDomainResponse, error) { return mg.VerifyDomain(ctx, domain) })
	do("UpdateDomain", func() error {
		return mg.UpdateDomain(ctx, domain, &mailgun.UpdateDomainOptions{WebScheme: "https", WebPrefix: "go"})
	})
	do("UpdateDomainConnection", func() error {
		return mg.UpdateDomainConnection(ctx, domain, mtypes.DomainConnection{RequireTLS: true})
	})
	connection := call("GetDomainConnection", func() (mtypes.DomainConnection, error) {
		return mg.GetDomainConnection(ctx, domain)
	})
	equal(connection.RequireTLS, true)
	do("UpdateClickTracking", func() error { return mg.UpdateClickTracking(ctx, domain, "htmlonly") })
	do("UpdateOpenTracking", func() error { return mg.UpdateOpenTracking(ctx, domain, "yes") })
	do("UpdateUnsubscribeTracking", func() error {
		return mg.UpdateUnsubscribeTracking(ctx, domain, "yes", "<a href='%unsubscribe_url%'>x</a>", "%unsubscribe_url%")
	})
	tracking := call("GetDomainTracking", func() (mtypes.DomainTracking, error) {
		return mg.GetDomainTracking(ctx, domain)
	})
	equal(tracking.Open.Active, true)
	do("CreateCredential", func() error { return mg.CreateCredential(ctx, domain, "ann", "long enough 17") })
	credentials := mg.ListCredentials(domain, nil)
	equal(len(pages("ListCredentials", credentials.Next, credentials.Err)) > 0, true)
	do("ChangeCredentialPassword", func() error {
		return mg.ChangeCredentialPassword(ctx, domain, "ann", "longer than before")
	})
	do("DeleteCredential", func() error { return mg.DeleteCredential(ctx, domain, "ann") })
	call("CreateDomainKey", func() (mtypes.DomainKey, error) {
		return mg.CreateDomainKey(ctx, domain, "go", &mailgun.CreateDomainKeyOptions{Bits: 2048})
	})
	keys := call("ListDomainKeys", func() ([]mtypes.DomainKey, error) {
		var page []mtypes.DomainKey
		it := mg.ListDomainKeys(domain)
		it.First(ctx, &page)
		return page, it.Err()
	})
	equal(len(keys), 2)
	allKeys := mg.ListAllDomainsKeys(nil)
	pages("ListAllDomainsKeys", allKeys.Next, allKeys.Err)
	call("UpdateDomainDkimAuthority", func() (mtypes.UpdateDomainDkimAuthorityResponse, error) {
		return mg.UpdateDomainDkimAuthority(ctx, domain, true)
	})
	do("DeleteDomainKey", func() error { return mg.DeleteDomainKey(ctx, domain, "go") })
	call("ListDomainIPs", func() ([]mtypes.IPAddress, error) { return mg.ListDomainIPs(ctx, domain) })
	call("ListIPs", func() ([]mtypes.IPAddress, error) { return mg.ListIPs(ctx, false, false) })
	call("GetTagLimits", func() (mtypes.TagLimits, error) { return mg.GetTagLimits(ctx, domain) })
}

func suppressions(mg *mailgun.Client, domain string) {
	do("AddBounce", func() error { return mg.AddBounce(ctx, domain, "dora@example.org", "550", "Gone") })
	do("AddBounces", func() error {
		return mg.AddBounces(ctx, domain, []mtypes.Bounce{{Address: "eve@example.org"}, {Address: "fred@example.org"}})
	})
	bounce := call("GetBounce", func() (mtypes.Bounce, error) { return mg.GetBounce(ctx, domain, "dora@example.org") })
	equal([]any{bounce.Address, bounce.Code}, []any{"dora@example.org", "550"})
	bounces := mg.ListBounces(domain, &mailgun.ListOptions{Limit: 2})
	equal(len(pages("ListBounces", bounces.Next, bounces.Err)), 4)
	do("DeleteBounce", func() error { return mg.DeleteBounce(ctx, domain, "dora@example.org") })
	do("DeleteBounceList", func() error { return mg.DeleteBounceList(ctx, domain) })

	do("CreateComplaint", func() error { return mg.CreateComplaint(ctx, domain, "dora@example.org") })
	do("CreateComplaints", func() error { return mg.CreateComplaints(ctx, domain, []string{"eve@example.org"}) })
	call("GetComplaint", func() (mtypes.Complaint, error) { return mg.GetComplaint(ctx, domain, "dora@example.org") })
	complaints := mg.ListComplaints(domain, nil)
	equal(len(pages("ListComplaints", complaints.Next, complaints.Err)), 2)
	do("DeleteComplaint", func() error { return mg.DeleteComplaint(ctx, domain, "dora@example.org") })

	do("CreateUnsubscribe", func() error { return mg.CreateUnsubscribe(ctx, domain, "dora@example.org", "*") })
	do("CreateUnsubscribes", func() error {
		return mg.CreateUnsubscribes(ctx, domain, []mtypes.Unsubscribe{{Address: "eve@example.org", Tags: []string{"news"}}})
	})
	call("GetUnsubscribe", func() (mtypes.Unsubscribe, error) {
		return mg.GetUnsubscribe(ctx, domain, "dora@example.org")
	})
	unsubscribes := mg.ListUnsubscribes(domain, nil)
	equal(len(pages("ListUnsubscribes", unsubscribes.Next, unsubscribes.Err)), 2)
	do("DeleteUnsubscribeWithTag", func() error {
		return mg.DeleteUnsubscribeWithTag(ctx, domain, "eve@example.org", "news")
	})
	do("DeleteUnsubscribe", func() error { return mg.DeleteUnsubscribe(ctx, domain, "dora@example.org") })
}

func templates(mg *mailgun.Client, domain string) {
	template := mtypes.Template{Name: "welcome", Description: "First mail", Version: mtypes.TemplateVersion{
		Tag: "v1", Template: "<p>Hello {{name}}</p>", Engine: mtypes.TemplateEngineHandlebars}}
	do("CreateTemplate", func() error { return mg.CreateTemplate(ctx, domain, &template) })
	version := mtypes.TemplateVersion{Tag: "v2", Template: "<p>Hi {{name}}</p>", Active: true,
		Engine: mtypes.TemplateEngineHandlebars}
	do("AddTemplateVersion", func() error { return mg.AddTemplateVersion(ctx, domain, "welcome", &version) })
	found := call("GetTemplate", func() (mtypes.Template, error) { return mg.GetTemplate(ctx, domain, "welcome") })
	equal(found.Version.Tag, "v2")
	do("UpdateTemplate", func() error {
		return mg.UpdateTemplate(ctx, domain, &mtypes.Template{Name: "welcome", Description: "Second"})
	})
	all := mg.ListTemplates(domain, &mailgun.ListTemplateOptions{Limit: 1, Active: true})
	equal(len(pages("ListTemplates", all.Next, all.Err)), 1)
	call("GetTemplateVersion", func() (mtypes.TemplateVersion, error) {
		return mg.GetTemplateVersion(ctx, domain, "welcome", "v1")
	})
	do("UpdateTemplateVersion", func() error {
		return mg.UpdateTemplateVersion(ctx, domain, "welcome", &mtypes.TemplateVersion{Tag: "v1", Comment: "changed"})
	})
	versions := mg.ListTemplateVersions(domain, "welcome", nil)
	equal(len(pages("ListTemplateVersions", versions.Next, versions.Err)), 2)
	message := mailgun.NewMessage(domain, "shop@"+domain, "Welcome", "", "alice@example.org")
	message.SetTemplate("welcome")
	message.SetTemplateVersion("v2")
	message.SetTemplateRenderText(true)
	message.AddTemplateVariable("name", "Alice")
	call("Send, template", func() (mtypes.SendMessageResponse, error) { return mg.Send(ctx, message) })
	do("DeleteTemplateVersion", func() error { return mg.DeleteTemplateVersion(ctx, domain, "welcome", "v1") })
	do("DeleteTemplate", func() error { return mg.DeleteTemplate(ctx, domain, "welcome") })
}

func lists(mg *mailgun.Client, domain string) {
	address := "news@" + domain
	// The client reads the list beside the field that has it, and returns an empty one; so for UpdateMailingList.
	call("CreateMailingList", func() (mtypes.MailingList, error) {
		return mg.CreateMailingList(ctx, mtypes.MailingList{
			Address: address, Name: "News", AccessLevel: mtypes.AccessLevelReadOnly})
	})
	call("UpdateMailingList", func() (mtypes.MailingList, error) {
		return mg.UpdateMailingList(ctx, address, mtypes.MailingList{Description: "Weekly"})
	})
	found := call("GetMailingList", func() (mtypes.MailingList, error) { return mg.GetMailingList(ctx, address) })
	equal(found.Description, "Weekly")
	all := mg.ListMailingLists(nil)
	equal(len(pages("ListMailingLists", all.Next, all.Err)), 1)
	yes := true
	do("CreateMember", func() error {
		return mg.CreateMember(ctx, true, address, mtypes.Member{
			Address: "alice@example.org", Name: "Alice", Subscribed: &yes, Vars: map[string]any{"age": 26}})
	})
	do("CreateMemberList", func() error {
		return mg.CreateMemberList(ctx, &yes, address, []any{
			mtypes.Member{Address: "bob@example.org", Subscribed: &yes}, mtypes.Member{Address: "carol@example.org"}})
	})
	member := call("GetMember", func() (mtypes.Member, error) {
		return mg.GetMember(ctx, "alice@example.org", address)
	})
	equal(member.Vars, map[string]any{"age": 26.0})
	members := mg.ListMembers(address, &mailgun.ListOptions{Limit: 2})
	equal(len(pages("ListMembers", members.Next, members.Err)), 3)
	call("UpdateMember", func() (mtypes.Member, error) {
		return mg.UpdateMember(ctx, "alice@example.org", address, mtypes.Member{Name: "Alice A."})
	})
	do("DeleteMember", func() error { return mg.DeleteMember(ctx, "alice@example.org", address) })
	do("DeleteMailingList", func() error { return mg.DeleteMailingList(ctx, address) })
}

func hooksAndRoutes(mg *mailgun.Client, domain string) {
	hook := "https://hooks.example/mail"
	do("CreateWebhook", func() error { return mg.CreateWebhook(ctx, domain, "clicked", []string{hook}) })
	all := call("ListWebhooks", func() (map[string][]string, error) { return mg.ListWebhooks(ctx, domain) })
	equal(all["clicked"], []string{hook})
	one := call("GetWebhook", func() ([]string, error) { return mg.GetWebhook(ctx, domain, "clicked") })
	equal(one, []string{hook})
	do("UpdateWebhook", func() error { return mg.UpdateWebhook(ctx, domain, "clicked", []string{hook, hook + "2"}) })
	do("DeleteWebhook", func() error { return mg.DeleteWebhook(ctx, domain, "clicked") })

	route := call("CreateRoute", func() (mtypes.Route, error) {
		return mg.CreateRoute(ctx, mtypes.Route{Priority: 1, Description: "Support",
			Expression: "match_recipient('support@" + domain + "')",
			Actions:    []string{"forward('https://hooks.example/in')", "stop()"}})
	})
	equal(len(route.Actions), 2)
	routes := mg.ListRoutes(nil)
	equal(len(pages("ListRoutes", routes.Next, routes.Err)), 1)
	call("GetRoute", func() (mtypes.Route, error) { return mg.GetRoute(ctx, route.Id) })
	changed := call("UpdateRoute", func() (mtypes.Route, error) {
		return mg.UpdateRoute(ctx, route.Id, mtypes.Route{Priority: 2, Description: "Help"})
	})
	equal(changed.Description, "Help")
	do("DeleteRoute", func() error { return mg.DeleteRoute(ctx, route.Id) })
}

func figures(mg *mailgun.Client, domain string) {
	metrics := call("ListMetrics", func() (mtypes.MetricsResponse, error) {
		var page mtypes.MetricsResponse
		now := time.Now().UTC()
		it, err := mg.ListMetrics(mailgun.MetricsOptions{
			Start: mtypes.RFC2822Time(now.Add(-24 * time.Hour)), End: mtypes.RFC2822Time(now.Add(time.Minute)),
			Resolution: "day", Dimensions: []string{"time"}, Metrics: []string{"accepted_count", "delivered_count"},
			IncludeAggregates: true})
		if err == nil {
			it.Next(ctx, &page)
			err = it.Err()
		}
		return page, err
	})
	equal(*metrics.Aggregates.Metrics.AcceptedCount >= 4, true)
	tags := mg.ListTags(domain, nil)
	equal(len(pages("ListTags", tags.Next, tags.Err)), 2)
	call("GetTag", func() (mtypes.Tag, error) { return mg.GetTag(ctx, domain, "order") })
	do("DeleteTag", func() error { return mg.DeleteTag(ctx, domain, "order") })
	subaccounts := mg.ListSubaccounts(nil)
	pages("ListSubaccounts", subaccounts.Next, subaccounts.Err)
	call("ListAPIKeys", func() ([]mtypes.APIKey, error) { return mg.ListAPIKeys(ctx, nil) })
}

// Sends a mail with the library of Supabase Auth, over STARTTLS with a login: supabase JOB-FILE
// SSL_CERT_FILE: the authority to trust.
package main

import (
	"encoding/json"
	"io"
	"log"
	"os"

	"gopkg.in/gomail.v2"
)

type job struct {
	From string
	Smtp struct {
		Host, User, Password string
		Port                 int
	}
	Mail struct {
		To, Subject, Text, Html, Tag string
		File                         struct{ Name, Content string }
	}
}

func main() {
	content, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var given job
	if err := json.Unmarshal(content, &given); err != nil {
		log.Fatal(err)
	}
	mail := gomail.NewMessage()
	mail.SetHeader("From", given.From)
	mail.SetHeader("To", given.Mail.To)
	mail.SetHeader("Subject", given.Mail.Subject)
	mail.SetHeader("X-Mailgun-Tag", given.Mail.Tag)
	mail.SetBody("text/plain", given.Mail.Text)
	mail.AddAlternative("text/html", given.Mail.Html)
	mail.Attach(given.Mail.File.Name, gomail.SetCopyFunc(func(to io.Writer) error {
		_, err := io.WriteString(to, given.Mail.File.Content)
		return err
	}))
	server := given.Smtp
	if err := gomail.NewDialer(server.Host, server.Port, server.User, server.Password).DialAndSend(mail); err != nil {
		log.Fatal(err)
	}
}
